"""Neural machine translation: vocabularies, training, conversion, engines and the translate step."""
