"""Sentence encoders: one architecture a module, all with the interface of `protocol.Encoder`."""
