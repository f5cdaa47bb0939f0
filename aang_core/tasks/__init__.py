"""Tasks and weighters, as engines and trainers know them: nothing here knows of text."""
