"""Experiments that run as they stand: one small file each.

    file               trains                         on
    digits_cnn         a convnet (the default)        8x8 digits, shipped
    digits_vit         a Vision Transformer           8x8 digits, shipped
    digits_gan         a DCGAN                        8x8 digits, shipped
    python_lm          a byte-level GPT               Python's own source
    resnet50_imagenet  ResNet-50                      your ImageNet
    gpt2_text          GPT-2 small, byte-level        your text
    dcgan_images       a DCGAN for 64x64 images       your folder of images

Each holds one record, `EXPERIMENT`; flags of `python -m tfmulti.run` change
its fields for a run. A new experiment is a copy of one of these files, named
in the entry-point group `tfmulti.experiments` of any installed package.
Nothing here imports TensorFlow.
"""
