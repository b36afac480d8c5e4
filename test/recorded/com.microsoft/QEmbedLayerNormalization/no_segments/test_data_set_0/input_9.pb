B
words_zeroJu