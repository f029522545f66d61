"""Sentence encoders, one architecture per module, all with the interface of `protocol.Encoder`."""
