"""Trains tokenizers of BERT and GPT-2 on a few sentences, and prints their vocabularies and the ids of texts.

Arguments: a JSON file with the texts.
"""

import json
import sys

from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

SENTENCES = [
    "Models outlive the tools that made them; their files stay.",
    "A reader who knows one format knows all of them, or so it seems.",
    "Jim Henson was a puppeteer. Who was Jim Henson? He's the one who'll be back!",
    "Zürich, Café, naïve, Ærø, straße: words with accents and without.",
    "1234567890 numbers, 3.14 and 2/3, e-mail@example.org, #tags & so on...",
    "数えるとき、言葉は一つずつ。 Слова и числа: 42.",
]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        texts = json.load(file)
    bert = BertWordPieceTokenizer(lowercase=True)
    bert.train_from_iterator(SENTENCES, vocab_size=300, min_frequency=1, show_progress=False)
    gpt2 = ByteLevelBPETokenizer()
    special = ["<|endoftext|>"]
    gpt2.train_from_iterator(
        SENTENCES, vocab_size=500, min_frequency=1, show_progress=False, special_tokens=special
    )
    by_id = sorted(bert.get_vocab().items(), key=lambda pair: pair[1])
    print(json.dumps({
        "bert": {
            "vocabulary": "\n".join(token for token, _ in by_id),
            "ids": [bert.encode(text, add_special_tokens=False).ids for text in texts],
        },
        "gpt2": {
            "vocabulary": gpt2.get_vocab(),
            "ids": [gpt2.encode(text).ids for text in texts],
        },
    }))


main()
