"""Model factories: a frozen configuration in, an uncompiled Keras model out.

Every factory is one module that offers the same four names:

    Config                       what the model is; a frozen, checked record
    build(config)                -> keras.Model, uncompiled; its weights follow
                                 keras.utils.set_random_seed
    parameter_count(config)      all weights, as keras' count_params, without
                                 building anything
    flops_per_example(config)    floating-point operations of one forward pass
                                 (see `tfmulti_models.costs` for the convention)

Factories are found by name through the entry-point group `tfmulti.models`,
which other packages can join. Nothing here knows of tfmulti: the models work
in any Keras program. Classifiers and language models give float32 logits,
whatever the dtype policy; the GANs carry their own `train_step`.

Reading order: checks, costs, convnet, resnet; transformer, vit,
transformer_lm; gan_networks, gan, dcgan, wgan_gp.
"""
