"""Programs that print JSON for the side that does not import TensorFlow.

    doctor ──starts──► python -m tfmulti.probes.NAME ──JSON──► doctor
"""
