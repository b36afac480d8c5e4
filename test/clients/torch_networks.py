# SPDX-License-Identifier: Apache-2.0
"""The networks of torch_exports.py: small ones of many kinds, with random weights.

A function gives the module and what makes its inputs, by name in the order of forward's arguments, for the dimensions
of a size. The decorator has the opsets at which each exporter writes it (None: PyTorch refuses), the axes that are
dynamic, and three sizes: that of the export, the largest and the smallest.
"""
import inspect
import sys
import types

import torch
from torch import nn
from torch.nn import functional as F

# This path exists in eager mode alone, and its fused operators have no form in ONNX.
torch.backends.mha.set_fastpath_enabled(False)

NETWORKS = []
BATCH = dict(batch=(2, 3, 1))
TEXT = dict(batch=(2, 3, 1), length=(9, 17, 4))
IMAGE = dict(batch=(2, 3, 1), height=(64, 96, 32), width=(96, 64, 64))
NCHW = {0: "batch", 2: "height", 3: "width"}
TOKENS = {0: "batch", 1: "length"}


class Network:
    """What the decorator says of a function."""

    def __init__(self, make, dynamo, script, axes, dims):
        self.make, self.name, self.axes = make, make.__name__, axes
        self.exports = [(exporter, opset) for exporter, opsets in (("dynamo", dynamo), ("script", script))
                        for opset in (opsets if isinstance(opsets, tuple) else (opsets,)) if opset]
        self.sizes = [{name: values[i] for name, values in dims.items()} for i in range(3)]

    def source(self):
        """The function's text and that of whatever else in this file it names."""
        found, left = {}, [self.make]
        while left:
            item = left.pop()
            if item.__qualname__ in found:
                continue
            found[item.__qualname__] = inspect.getsource(item)
            here = vars(sys.modules[item.__module__])
            left += [base for base in getattr(item, "__bases__", ()) if base.__module__ == __name__]
            left += [here[name] for name in _names(item) if getattr(here.get(name), "__module__", None) == __name__
                     and isinstance(here[name], (type, types.FunctionType))]
        return "".join(found[name] for name in sorted(found))


def _names(item):
    codes = [item.__code__] if isinstance(item, types.FunctionType) else [
        value.__code__ for value in vars(item).values() if isinstance(value, types.FunctionType)]
    names = set()
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return names


def network(dynamo, script, axes, **dims):
    def add(make):
        NETWORKS.append(Network(make, dynamo, script, axes, dims))
        return make
    return add


class Called(nn.Module):
    """A module called by keywords, of whose results some are given."""

    def __init__(self, model, names, results):
        super().__init__()
        self.model, self.names, self.results = model, names.split(), results.split()

    def forward(self, *values):
        given = self.model(**dict(zip(self.names, values)))
        return tuple(given[name] for name in self.results)


def randn(*shape):
    return torch.randn(shape)


def ids(*shape, high=64):
    return torch.randint(1, high, shape)


def padded(batch, length):
    """A mask whose rows end at different places, the first row at the end."""
    return (torch.arange(length)[None] < length - torch.arange(batch)[:, None] % max(length // 2, 1)).long()


def image(batch, height, width):
    return {"image": randn(batch, 3, height, width)}


def square(size, name="image"):
    return lambda batch: {name: randn(batch, 3, size, size)}


# ---------------------------------------------------------------------- convolution networks


@network(20, 13, {"image": NCHW}, **IMAGE)
def resnet():
    import torchvision
    model = torchvision.models.ResNet(torchvision.models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10)
    return model, image


@network(18, 14, {"image": NCHW}, **IMAGE)
def mobilenet_v3():
    import torchvision
    return torchvision.models.mobilenet_v3_small(num_classes=10), image


@network(21, 15, {"image": NCHW}, **IMAGE)
def efficientnet():
    import torchvision
    return torchvision.models.efficientnet_b0(num_classes=10), image


@network(22, 16, {"image": NCHW}, **IMAGE)
def convnext():
    import timm
    return timm.create_model("convnextv2_atto", num_classes=10), image


@network(23, 17, {"image": NCHW}, **IMAGE)
def densenet():
    import torchvision
    return torchvision.models.DenseNet(8, (2, 2, 2, 2), 16, num_classes=10), image


@network(24, 18, {"image": NCHW}, **IMAGE)
def shufflenet():
    import torchvision
    return torchvision.models.shufflenet_v2_x0_5(num_classes=10), image


@network(25, 13, {"image": NCHW}, **IMAGE)
def regnet():
    import timm
    return timm.create_model("regnety_002", num_classes=10), image


@network(20, 14, {"image": NCHW}, **IMAGE)
def ghostnet():
    import timm
    return timm.create_model("ghostnet_050", num_classes=10), image


@network(18, 15, {"image": NCHW}, **IMAGE)
def hrnet():
    import timm
    return timm.create_model("hrnet_w18_small", num_classes=10), image


@network(20, 13, {"clip": {0: "batch", 2: "time"}}, batch=(2, 3, 1), time=(4, 8, 2))
def video_resnet():
    import torchvision
    return (torchvision.models.video.r3d_18(num_classes=10),
            lambda batch, time: {"clip": randn(batch, 3, time, 32, 32)})


# ---------------------------------------------------------------------- vision transformers


@network(20, 14, {"image": {0: "batch"}}, **BATCH)
def vision_transformer():
    import torchvision
    return torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10), square(32)


@network(18, 15, {"image": {0: "batch"}}, **BATCH)
def swin():
    import torchvision
    model = torchvision.models.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=10,
                                               block=torchvision.models.swin_transformer.SwinTransformerBlockV2,
                                               downsample_layer=torchvision.models.swin_transformer.PatchMergingV2)
    return model, square(64)


@network(21, 16, {"image": {0: "batch"}}, **BATCH)
def maxvit():
    import torchvision
    return torchvision.models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10), square(64)


@network(22, 17, {"image": {0: "batch"}}, **BATCH)
def mobilevit():
    import timm
    return timm.create_model("mobilevit_xxs", num_classes=10), square(64)


@network(23, 14, {"image": {0: "batch"}}, **BATCH)
def levit():
    import timm
    return timm.create_model("levit_128s", num_classes=10, img_size=64), square(64)


@network(24, 16, {"pixels": {0: "batch"}}, **BATCH)
def beit():
    import transformers as t
    model = t.BeitModel(t.BeitConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                     image_size=32, patch_size=8, use_relative_position_bias=True))
    return Called(model, "pixel_values", "last_hidden_state pooler_output"), square(32, "pixels")


@network(25, 17, {"pixels": NCHW}, batch=(2, 3, 1), height=(56, 84, 28), width=(84, 56, 42))
def dinov2():
    import transformers as t
    model = t.Dinov2Model(t.Dinov2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=56,
                                         patch_size=14))
    return (Called(model, "pixel_values", "last_hidden_state"),
            lambda batch, height, width: {"pixels": randn(batch, 3, height, width)})


@network(20, 17, {"image": {0: "batch"}}, **BATCH)
def mixer():
    import timm
    return timm.create_model("mixer_s32_224", num_classes=10, img_size=64), square(64)


# ---------------------------------------------------------------------- dense outputs


@network(20, 14, {"image": NCHW}, **IMAGE)
def deeplab():
    import torchvision

    class Masks(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(
                weights=None, weights_backbone=None, num_classes=5, aux_loss=True)

        def forward(self, image):
            given = self.model(image)
            return given["out"].softmax(1), given["out"].argmax(1)
    return Masks(), image


class Twice(nn.Sequential):
    """Two convolutions of 3x3."""

    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1),
                         nn.BatchNorm2d(o), nn.LeakyReLU(0.1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([Twice(3, 8), Twice(8, 16), Twice(16, 32)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 3, 2, 1, 1)])
        self.join = nn.ModuleList([Twice(32, 16), Twice(16, 8)])
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, image):
        kept, x = [], image
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, join, skip in zip(self.up, self.join, (kept[1], kept[0])):
            x = F.interpolate(up(x), size=skip.shape[-2:], mode="bilinear", align_corners=False)
            x = join(torch.cat([x, skip], 1))
        return torch.sigmoid(self.last(x))


@network((18, 25), (13, 17), {"image": NCHW}, batch=(2, 3, 1), height=(50, 77, 20), width=(37, 64, 24))
def unet():
    return UNet(), image


@network(21, 16, {"pixels": NCHW}, **IMAGE)
def segformer():
    import transformers as t
    config = t.SegformerConfig(hidden_sizes=[8, 16, 32, 64], depths=[1, 1, 1, 1], decoder_hidden_size=32, num_labels=4)
    return (Called(t.SegformerForSemanticSegmentation(config), "pixel_values", "logits"),
            lambda batch, height, width: {"pixels": randn(batch, 3, height, width)})


@network(22, 17, {"pixels": {0: "batch"}}, **BATCH)
def depth():
    import transformers as t
    back = t.Dinov2Config(hidden_size=32, num_hidden_layers=4, num_attention_heads=4, image_size=56, patch_size=14,
                          out_features=["stage1", "stage2", "stage3", "stage4"], reshape_hidden_states=False)
    config = t.DepthAnythingConfig(backbone_config=back, reassemble_hidden_size=32, neck_hidden_sizes=[8, 16, 32, 32],
                                   fusion_hidden_size=16, head_hidden_size=8, patch_size=14)
    return Called(t.DepthAnythingForDepthEstimation(config), "pixel_values", "predicted_depth"), square(56, "pixels")


# ---------------------------------------------------------------------- detection


@network(None, 16, {"image": {1: "height", 2: "width"}}, height=(96, 160, 64), width=(128, 96, 96))
def faster_rcnn():
    import torchvision

    class One(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
                weights=None, weights_backbone=None, num_classes=5, min_size=96, max_size=160,
                rpn_post_nms_top_n_test=40, box_score_thresh=0.0, box_detections_per_img=20)

        def forward(self, image):
            found = self.model([image])[0]
            return found["boxes"], found["labels"], found["scores"]
    return One(), lambda height, width: {"image": torch.rand(3, height, width)}


class Yolo(nn.Module):
    """Three scales of boxes, those of a high score, without those that overlap."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 6, 2, 2), nn.SiLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.SiLU())
        self.levels = nn.ModuleList([nn.Sequential(nn.Conv2d(16, 16, 3, 2, 1), nn.SiLU()) for _ in range(3)])
        self.heads = nn.ModuleList([nn.Conv2d(16, 7, 1) for _ in range(3)])

    def decode(self, image):
        x, rows = self.stem(image), []
        for level, head, stride in zip(self.levels, self.heads, (8.0, 16.0, 32.0)):
            x = level(x)
            y = head(x)
            high, wide = y.shape[2], y.shape[3]
            grid = torch.stack(torch.meshgrid(torch.arange(wide), torch.arange(high), indexing="xy"), -1)
            y = y.permute(0, 2, 3, 1)
            centre = (y[..., :2].sigmoid() * 2 - 0.5 + grid) * stride
            size = (y[..., 2:4].sigmoid() * 2) ** 2 * stride
            rows.append(torch.cat([centre, size, y[..., 4:].sigmoid()], -1).flatten(1, 2))
        return torch.cat(rows, 1)

    def forward(self, image):
        import torchvision
        rows = self.decode(image)[0]
        scores, labels = rows[:, 4:].max(1)
        chosen = scores > 0.5
        rows, scores, labels = rows[chosen], scores[chosen], labels[chosen]
        boxes = torch.cat([rows[:, :2] - rows[:, 2:4] / 2, rows[:, :2] + rows[:, 2:4] / 2], 1)
        kept = torchvision.ops.nms(boxes + labels[:, None] * 4096.0, scores, 0.45)
        return boxes[kept], scores[kept], labels[kept]


@network((20, 23), (13, 17), {"image": {2: "height", 3: "width"}}, height=(96, 160, 32), width=(64, 224, 64))
def yolo():
    return Yolo(), lambda height, width: {"image": 4 * randn(1, 3, height, width)}


@network(18, 16, {"pixels": {0: "batch"}}, **BATCH)
def detr():
    import transformers as t
    back = t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"])
    config = t.DetrConfig(use_timm_backbone=False, backbone=None, backbone_config=back, d_model=32, encoder_layers=2,
                          decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                          decoder_ffn_dim=64, num_queries=7, num_labels=5)
    return Called(t.DetrForObjectDetection(config), "pixel_values", "logits pred_boxes"), square(64, "pixels")


@network(20, 17, {"pixels": {0: "batch"}}, **BATCH)
def deformable_detr():
    import transformers as t
    back = t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 32], depths=[1, 1, 1],
                          out_features=["stage1", "stage2", "stage3"])
    config = t.DeformableDetrConfig(use_timm_backbone=False, backbone=None, backbone_config=back, d_model=32,
                                    encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, num_feature_levels=3,
                                    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=7,
                                    num_labels=5)
    return Called(t.DeformableDetrForObjectDetection(config), "pixel_values", "logits pred_boxes"), square(64, "pixels")


@network(24, 16, {"pixels": {0: "batch"}}, **BATCH)
def yolos():
    import transformers as t
    config = t.YolosConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                           image_size=[32, 48], patch_size=8, num_detection_tokens=5, num_labels=5)
    return (Called(t.YolosForObjectDetection(config), "pixel_values", "logits pred_boxes"),
            lambda batch: {"pixels": randn(batch, 3, 32, 48)})


@network(20, 17, {"features": {2: "height", 3: "width"}, "boxes": {0: "boxes"}}, height=(16, 24, 8), width=(12, 30, 9),
         boxes=(5, 9, 1))
def roi_heads():
    import torchvision

    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.box, self.mask = nn.Linear(4 * 49, 6), nn.ConvTranspose2d(4, 3, 2, 2)

        def forward(self, features, boxes):
            regions = torchvision.ops.roi_align(features, [boxes], (7, 7), 0.5, 2, True)
            logits = self.box(regions.flatten(1))
            labels = logits[:, :3].argmax(1)
            masks = self.mask(regions)[torch.arange(labels.shape[0]), labels]
            return logits, masks.sigmoid()

    def feed(height, width, boxes):
        corner = torch.rand(boxes, 2) * 8
        return {"features": randn(1, 4, height, width), "boxes": torch.cat([corner, corner + 1 + torch.rand(boxes, 2) * 8], 1)}
    return Heads(), feed


# ---------------------------------------------------------------------- encoders of text


@network((18, 23), (14, 18), {"tokens": TOKENS, "mask": TOKENS}, **TEXT)
def bert():
    import transformers as t
    model = t.BertModel(t.BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=64))
    return (Called(model, "input_ids attention_mask", "last_hidden_state pooler_output"),
            lambda batch, length: {"tokens": ids(batch, length), "mask": padded(batch, length)})


@network(20, 14, {"tokens": TOKENS, "mask": TOKENS}, **TEXT)
def distilbert():
    import transformers as t
    model = t.DistilBertForQuestionAnswering(t.DistilBertConfig(vocab_size=64, dim=32, n_layers=2, n_heads=4, hidden_dim=64))
    return (Called(model, "input_ids attention_mask", "start_logits end_logits"),
            lambda batch, length: {"tokens": ids(batch, length), "mask": padded(batch, length)})


@network(21, 15, {"tokens": TOKENS, "mask": TOKENS}, **TEXT)
def deberta():
    import transformers as t
    config = t.DebertaV2Config(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                               intermediate_size=64, relative_attention=True, pos_att_type=["p2c", "c2p"],
                               position_buckets=8, max_relative_positions=16, share_att_key=True, conv_kernel_size=3)
    return (Called(t.DebertaV2Model(config), "input_ids attention_mask", "last_hidden_state"),
            lambda batch, length: {"tokens": ids(batch, length), "mask": padded(batch, length)})


@network(24, 16, {"tokens": TOKENS, "mask": TOKENS}, **TEXT)
def mpnet():
    import transformers as t
    model = t.MPNetModel(t.MPNetConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                       intermediate_size=64))

    class Sentence(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, tokens, mask):
            hidden = self.model(input_ids=tokens, attention_mask=mask).last_hidden_state
            weight = mask[..., None].float()
            return F.normalize((hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9), dim=1)
    return Sentence(), lambda batch, length: {"tokens": ids(batch, length), "mask": padded(batch, length)}


@network(25, 17, {"tokens": TOKENS, "mask": TOKENS}, **TEXT)
def modernbert():
    import transformers as t
    config = t.ModernBertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
                                intermediate_size=64, local_attention=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                cls_token_id=1, sep_token_id=2)
    return (Called(t.ModernBertModel(config), "input_ids attention_mask", "last_hidden_state"),
            lambda batch, length: {"tokens": ids(batch, length), "mask": padded(batch, length)})


@network(20, 17, {"tokens": TOKENS}, **TEXT)
def xlnet():
    import transformers as t
    config = t.XLNetConfig(vocab_size=64, d_model=32, n_layer=2, n_head=4, d_inner=64)
    return (Called(t.XLNetModel(config), "input_ids", "last_hidden_state"),
            lambda batch, length: {"tokens": ids(batch, length)})


@network(18, None, {"tokens": TOKENS}, **TEXT)
def fnet():
    import transformers as t
    config = t.FNetConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, intermediate_size=64)
    return (Called(t.FNetModel(config), "input_ids", "last_hidden_state"),
            lambda batch, length: {"tokens": ids(batch, length)})


# ---------------------------------------------------------------------- language models


class Cached(nn.Module):
    """A language model's step over keys and values that it is given; it gives them back longer."""

    def __init__(self, model, layers):
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, tokens, mask, *past):
        import transformers
        cache = transformers.DynamicCache([(past[2 * i], past[2 * i + 1]) for i in range(self.layers)])
        given = self.model(input_ids=tokens, attention_mask=mask, past_key_values=cache, use_cache=True)
        present = [tensor for layer in given.past_key_values.layers for tensor in (layer.keys, layer.values)]
        return (given.logits, *present)


def cached(model, layers, heads, size):
    def feed(batch, length, past):
        values = {"tokens": ids(batch, length), "mask": torch.ones(batch, past + length, dtype=torch.long)}
        for i in range(layers):
            values[f"key{i}"] = randn(batch, heads, past, size)
            values[f"value{i}"] = randn(batch, heads, past, size)
        return values
    return Cached(model, layers), feed


def past_axes(layers):
    axes = {"tokens": TOKENS, "mask": {0: "batch", 1: "all"}}
    for i in range(layers):
        axes[f"key{i}"] = axes[f"value{i}"] = {0: "batch", 2: "past"}
    return axes


PAST = dict(batch=(2, 3, 1), length=(3, 7, 2), past=(5, 12, 2))
TINY = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            max_position_embeddings=64)
GROUPED = dict(TINY, num_key_value_heads=2)


def causal(model):
    return Called(model, "input_ids attention_mask", "logits")


def prompt(batch, length):
    return {"tokens": ids(batch, length), "mask": padded(batch, length)}


PROMPT = {"tokens": TOKENS, "mask": TOKENS}


@network(20, 14, past_axes(2), **PAST)
def gpt2_past():
    import transformers as t
    return cached(t.GPT2LMHeadModel(t.GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64)), 2, 4, 8)


@network((18, 24), 14, PROMPT, **TEXT)
def gpt2():
    import transformers as t
    return causal(t.GPT2LMHeadModel(t.GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64))), prompt


@network((21, 23), 15, past_axes(2), **PAST)
def llama_past():
    import transformers as t
    return cached(t.LlamaForCausalLM(t.LlamaConfig(**GROUPED)), 2, 2, 8)


@network(25, 16, past_axes(2), **PAST)
def qwen3_past():
    import transformers as t
    return cached(t.Qwen3ForCausalLM(t.Qwen3Config(**GROUPED, head_dim=8)), 2, 2, 8)


@network(22, 17, PROMPT, **TEXT)
def gemma2():
    import transformers as t
    return causal(t.Gemma2ForCausalLM(t.Gemma2Config(**GROUPED, head_dim=8, sliding_window=6))), prompt


@network(23, 14, PROMPT, **TEXT)
def gemma3():
    import transformers as t
    return causal(t.Gemma3ForCausalLM(t.Gemma3TextConfig(**GROUPED, head_dim=8, sliding_window=6))), prompt


@network(20, 15, PROMPT, **TEXT)
def phi():
    import transformers as t
    return causal(t.PhiForCausalLM(t.PhiConfig(**TINY))), prompt


@network(23, 16, PROMPT, **TEXT)
def phi3():
    import transformers as t
    return causal(t.Phi3ForCausalLM(t.Phi3Config(**GROUPED, pad_token_id=0))), prompt


@network(24, 17, PROMPT, **TEXT)
def mistral():
    import transformers as t
    return causal(t.MistralForCausalLM(t.MistralConfig(**GROUPED, sliding_window=5))), prompt


@network(18, 14, PROMPT, **TEXT)
def bloom():
    import transformers as t
    return causal(t.BloomForCausalLM(t.BloomConfig(vocab_size=64, hidden_size=32, n_layer=2, n_head=4))), prompt


@network(21, 14, PROMPT, **TEXT)
def opt():
    import transformers as t
    return causal(t.OPTForCausalLM(t.OPTConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, ffn_dim=64,
                                               num_attention_heads=4, word_embed_proj_dim=32))), prompt


@network(22, 15, PROMPT, **TEXT)
def falcon():
    import transformers as t
    return causal(t.FalconForCausalLM(t.FalconConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2,
                                                     num_attention_heads=4))), prompt


@network(None, 17, {"tokens": {0: "batch"}}, **BATCH)
def mamba():
    import transformers as t
    config = t.MambaConfig(vocab_size=64, hidden_size=16, num_hidden_layers=2, state_size=4)
    return (Called(t.MambaForCausalLM(config), "input_ids", "logits"),
            lambda batch: {"tokens": ids(batch, 9)})


# ---------------------------------------------------------------------- encoders with decoders


@network(20, 14, {"tokens": TOKENS, "mask": TOKENS, "target": {0: "batch", 1: "target"}}, **TEXT, target=(5, 11, 2))
def t5():
    import transformers as t
    config = t.T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False)
    return (Called(t.T5ForConditionalGeneration(config), "input_ids attention_mask decoder_input_ids", "logits"),
            lambda batch, length, target: dict(prompt(batch, length), target=ids(batch, target)))


@network(23, 15, {"tokens": TOKENS, "mask": TOKENS, "target": {0: "batch", 1: "target"}}, **TEXT, target=(5, 11, 2))
def bart():
    import transformers as t
    config = t.BartConfig(vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                          decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, use_cache=False,
                          max_position_embeddings=64)
    return (Called(t.BartForConditionalGeneration(config), "input_ids attention_mask decoder_input_ids", "logits"),
            lambda batch, length, target: dict(prompt(batch, length), target=ids(batch, target)))


@network(24, None, {"features": {0: "batch"}, "target": {0: "batch", 1: "target"}}, batch=(2, 3, 1), target=(5, 11, 2))
def whisper():
    import transformers as t
    config = t.WhisperConfig(vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                             decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16,
                             max_source_positions=20, max_target_positions=32, use_cache=False, pad_token_id=0,
                             bos_token_id=1, eos_token_id=2, decoder_start_token_id=3)
    return (Called(t.WhisperForConditionalGeneration(config), "input_features decoder_input_ids", "logits"),
            lambda batch, target: {"features": randn(batch, 16, 40), "target": ids(batch, target)})


# ---------------------------------------------------------------------- sound


SOUND = dict(batch=(2, 3, 1), samples=(800, 1600, 480))
WAVE = {"wave": {0: "batch", 1: "samples"}}


def wave(batch, samples):
    return {"wave": randn(batch, samples)}


@network(20, 14, WAVE, **SOUND)
def wav2vec2():
    import transformers as t
    config = t.Wav2Vec2Config(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                              intermediate_size=64, conv_dim=[16, 16, 16], conv_stride=[5, 2, 2], conv_kernel=[10, 3, 3],
                              num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
    return Called(t.Wav2Vec2ForCTC(config), "input_values", "logits"), wave


@network(22, 15, WAVE, **SOUND)
def hubert():
    import transformers as t
    config = t.HubertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                            conv_dim=[16, 16, 16], conv_stride=[5, 2, 2], conv_kernel=[10, 3, 3],
                            feat_extract_norm="layer", do_stable_layer_norm=True, num_conv_pos_embeddings=16,
                            num_conv_pos_embedding_groups=4)
    return Called(t.HubertModel(config), "input_values", "last_hidden_state"), wave


class Spectrogram(nn.Module):
    """Logarithms of mel bands of a short-time Fourier transform, and a recurrent net over them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("bands", torch.rand(16, 33))
        self.gru = nn.GRU(16, 12, batch_first=True, bidirectional=True)

    def forward(self, wave):
        spectrum = torch.stft(wave, 64, 16, 64, self.window, center=True, pad_mode="reflect", return_complex=False)
        power = spectrum.pow(2).sum(-1)
        mel = torch.log10(torch.clamp(self.bands @ power, min=1e-5))
        mel = torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8.0)
        return mel, self.gru(mel.transpose(1, 2))[0]


class ComplexSpectrogram(Spectrogram):
    def forward(self, wave):
        spectrum = torch.view_as_real(torch.stft(wave, 64, 16, 64, self.window, return_complex=True))
        return torch.log(self.bands @ spectrum.pow(2).sum(-1) + 1e-3)


@network((18, 23), None, WAVE, **SOUND)
def spectrogram():
    return ComplexSpectrogram(), wave


@network(None, 17, WAVE, **SOUND)
def spectrogram_script():
    return Spectrogram(), wave


@network(25, 13, {"mel": {0: "batch", 2: "frames"}}, batch=(2, 3, 1), frames=(10, 25, 4))
def vocoder():
    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 16, 7, padding=3))
            self.up = nn.ModuleList([nn.ConvTranspose1d(16, 8, 8, 4, 2), nn.ConvTranspose1d(8, 4, 4, 2, 1)])
            self.blocks = nn.ModuleList([nn.ModuleList([
                nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation) for dilation in (1, 3, 5)])
                for channels in (8, 4)])
            self.last = nn.Conv1d(4, 1, 7, padding=3, padding_mode="reflect")

        def forward(self, mel):
            x = self.first(mel)
            for up, block in zip(self.up, self.blocks):
                x = up(F.leaky_relu(x, 0.1))
                for conv in block:
                    x = x + conv(F.leaky_relu(x, 0.1))
            return torch.tanh(self.last(F.elu(x)))
    return Generator(), lambda batch, frames: {"mel": randn(batch, 8, frames)}


# ---------------------------------------------------------------------- two kinds of input


@network(20, 15, {"tokens": TOKENS, "pixels": {0: "images"}, "mask": TOKENS}, **TEXT, images=(3, 5, 1))
def clip():
    import transformers as t
    text = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                eos_token_id=2, bos_token_id=1, pad_token_id=0)
    vision = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32,
                  patch_size=8)
    model = t.CLIPModel(t.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))
    return (Called(model, "input_ids pixel_values attention_mask", "logits_per_image text_embeds image_embeds"),
            lambda batch, length, images: {"tokens": ids(batch, length), "pixels": randn(images, 3, 32, 32),
                                           "mask": padded(batch, length)})


@network(21, 16, {"pixels": {0: "batch"}, "tokens": TOKENS}, **TEXT)
def trocr():
    import transformers as t
    encoder = t.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                          image_size=32, patch_size=8)
    decoder = t.TrOCRConfig(vocab_size=64, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=64,
                            max_position_embeddings=32, use_cache=False)
    model = t.VisionEncoderDecoderModel(t.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder))
    return (Called(model, "pixel_values decoder_input_ids", "logits"),
            lambda batch, length: {"pixels": randn(batch, 3, 32, 32), "tokens": ids(batch, length)})


# ---------------------------------------------------------------------- generation of images


@network(24, 16, {"latent": NCHW, "time": {0: "batch"}, "text": {0: "batch", 1: "length"}}, batch=(2, 3, 1),
         height=(8, 12, 4), width=(12, 8, 8), length=(5, 9, 3))
def diffusion():
    class Block(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.norm, self.conv, self.time = nn.GroupNorm(4, i), nn.Conv2d(i, o, 3, padding=1), nn.Linear(16, o)
            self.skip = nn.Conv2d(i, o, 1)
            self.self_attention = nn.MultiheadAttention(o, 2, batch_first=True)
            self.cross = nn.MultiheadAttention(o, 2, kdim=6, vdim=6, batch_first=True)
            self.layer = nn.LayerNorm(o)

        def forward(self, x, time, text):
            y = self.conv(F.silu(self.norm(x))) + self.time(time)[:, :, None, None] + self.skip(x)
            rows = y.flatten(2).transpose(1, 2)
            rows = rows + self.self_attention(self.layer(rows), self.layer(rows), self.layer(rows), need_weights=False)[0]
            rows = rows + self.cross(self.layer(rows), text, text, need_weights=False)[0]
            return rows.transpose(1, 2).reshape(y.shape)

    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 16))
            self.first = nn.Conv2d(4, 8, 3, padding=1)
            self.down, self.middle, self.up = Block(8, 8), Block(8, 16), Block(24, 8)
            self.last = nn.Conv2d(8, 4, 3, padding=1)

        def forward(self, latent, time, text):
            steps = torch.exp(-torch.arange(8) * 0.5)
            angles = time[:, None].float() * steps[None]
            time = self.embed(torch.cat([angles.sin(), angles.cos()], -1))
            a = self.down(self.first(latent), time, text)
            b = self.middle(F.avg_pool2d(a, 2), time, text)
            b = F.interpolate(b, scale_factor=2.0, mode="nearest")
            return self.last(self.up(torch.cat([a, b], 1), time, text))
    return Denoiser(), lambda batch, height, width, length: {
        "latent": randn(batch, 4, height, width), "time": torch.randint(0, 1000, (batch,)),
        "text": randn(batch, length, 6)}


@network(22, 17, {"image": NCHW}, **IMAGE)
def vae():
    class Vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.SiLU(),
                                        nn.Conv2d(16, 8, 1))
            self.decode = nn.Sequential(nn.Conv2d(4, 16, 1), nn.PixelShuffle(2), nn.Conv2d(4, 8, 3, padding=1), nn.Mish(),
                                        nn.Upsample(scale_factor=2, mode="nearest"), nn.InstanceNorm2d(8, affine=True),
                                        nn.Conv2d(8, 3, 3, padding=1))

        def forward(self, image):
            mean, log = self.encode(image).chunk(2, 1)
            log = log.clamp(-30.0, 20.0)
            return self.decode(mean + torch.exp(0.5 * log) * 0.1), -0.5 * (1 + log - mean ** 2 - log.exp()).sum((1, 2, 3))
    return Vae(), image


# ---------------------------------------------------------------------- recurrent networks


@network(20, 13, {"tokens": TOKENS, "h": {1: "batch"}, "c": {1: "batch"}}, **TEXT)
def lstm():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.lstm = nn.Embedding(64, 16), nn.LSTM(16, 12, 2, batch_first=True, bidirectional=True)
            self.last = nn.Linear(24, 5)

        def forward(self, tokens, h, c):
            hidden, (h, c) = self.lstm(self.embed(tokens), (h, c))
            return self.last(hidden), h, c
    return Tagger(), lambda batch, length: {"tokens": ids(batch, length), "h": randn(4, batch, 12), "c": randn(4, batch, 12)}


@network(None, 14, {"frames": TOKENS, "lengths": {0: "batch"}}, **TEXT)
def packed_lstm():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = nn.LSTM(6, 8, batch_first=True, bidirectional=True), nn.GRU(16, 8, batch_first=True)

        def forward(self, frames, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(frames, lengths, batch_first=True)
            hidden, _ = self.lstm(packed)
            hidden, last = self.gru(hidden)
            return nn.utils.rnn.pad_packed_sequence(hidden, batch_first=True)[0], last
    return Packed(), lambda batch, length: {"frames": randn(batch, length, 6),
                                            "lengths": length - torch.arange(batch) % length}


@network(None, 15, {"frames": TOKENS}, **TEXT)
def rnn():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.gru = nn.RNN(6, 8, 2, batch_first=True, nonlinearity="relu"), nn.GRU(8, 8, batch_first=True)

        def forward(self, frames):
            hidden, _ = self.rnn(frames)
            hidden, last = self.gru(hidden)
            return hidden, last
    return Recurrent(), lambda batch, length: {"frames": randn(batch, length, 6)}


@network(18, 16, {"sound": {0: "batch", 1: "frames"}, "labels": {0: "batch", 1: "labels"}}, batch=(2, 3, 1),
         frames=(9, 21, 4), labels=(4, 7, 2))
def transducer():
    class Transducer(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.embed = nn.LSTM(8, 16, batch_first=True), nn.Embedding(20, 12)
            self.predict, self.join = nn.LSTM(12, 16, batch_first=True), nn.Linear(16, 20)

        def forward(self, sound, labels):
            heard = self.encoder(sound)[0]
            said = self.predict(self.embed(F.pad(labels, (1, 0))))[0]
            return self.join(torch.tanh(heard[:, :, None] + said[:, None])).log_softmax(-1)
    return Transducer(), lambda batch, frames, labels: {"sound": randn(batch, frames, 8), "labels": ids(batch, labels, high=20)}


# ---------------------------------------------------------------------- loops and branches


@torch.jit.script
def greedy(start, frames, table, a, b, last):
    h = start
    token = torch.zeros([start.size(0)], dtype=torch.long)
    said = []
    for _ in range(frames.size(0)):
        h = torch.tanh(table[token] @ a + h @ b)
        token = (h @ last).argmax(1)
        said.append(token)
    return torch.stack(said, 1), h


@network(None, (14, 18), {"start": {0: "batch"}, "frames": {0: "frames"}}, batch=(2, 4, 1), frames=(5, 9, 3))
def greedy_loop():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.a = nn.Parameter(randn(10, 6)), nn.Parameter(randn(6, 8))
            self.b, self.last = nn.Parameter(randn(8, 8)), nn.Parameter(randn(8, 10))

        def forward(self, start, frames):
            return greedy(start, frames, self.table, self.a, self.b, self.last)
    return Decoder(), lambda batch, frames: {"start": randn(batch, 8), "frames": randn(frames)}


@torch.jit.script
def halved(x, limit: float):
    steps = 0
    while bool((x * x).sum() > limit):
        x = x * 0.5 + 0.01
        steps += 1
    if steps > 2:
        x = torch.cat([x, x[:1]], 0)
    else:
        x = x - 1.0
    return x, torch.tensor(steps)


@network(None, (13, 17), {"x": {0: "rows"}}, rows=(4, 40, 1))
def scripted_while():
    class Halved(nn.Module):
        def forward(self, x):
            return halved(x, 1.0)
    return Halved(), lambda rows: {"x": randn(rows, 5)}


@network((20, 24), None, {"x": {0: "rows"}}, rows=(4, 40, 1))
def cond():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 5)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: torch.relu(self.a(x)), lambda x: self.b(x).sin(), (x,))
    return Branches(), lambda rows: {"x": randn(rows, 5)}


@network(21, None, {"x": {0: "rows"}}, rows=(4, 40, 2))
def scan():
    from torch._higher_order_ops.scan import scan as scan_of

    class Filter(nn.Module):
        def forward(self, x):
            def step(state, row):
                state = 0.9 * state + row
                return state, state * 2
            last, rows = scan_of(step, torch.zeros(5), x, dim=0)
            return last, rows
    return Filter(), lambda rows: {"x": randn(rows, 5)}


# ---------------------------------------------------------------------- graphs and tables


@network(20, None, {"nodes": {0: "nodes"}, "edges": {1: "edges"}}, nodes=(6, 15, 2), edges=(10, 40, 1))
def graph_attention():
    class Layer(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.linear, self.source, self.target = nn.Linear(i, o), nn.Linear(o, 1), nn.Linear(o, 1)

        def forward(self, nodes, edges):
            x, (a, b) = self.linear(nodes), (edges[0], edges[1])
            score = F.leaky_relu(self.source(x)[a] + self.target(x)[b], 0.2).squeeze(1)
            weight = torch.exp(score - score.max())
            total = torch.zeros(x.shape[0]).index_add(0, b, weight)
            weight = weight / (total[b] + 1e-9)
            return torch.zeros_like(x).scatter_add(0, b[:, None].expand(-1, x.shape[1]), x[a] * weight[:, None])

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = Layer(5, 8), Layer(8, 8)

        def forward(self, nodes, edges):
            x = self.two(F.elu(self.one(nodes, edges)), edges)
            return x, x.mean(0), x.amax(0)
    return Graph(), lambda nodes, edges: {"nodes": randn(nodes, 5), "edges": torch.randint(0, nodes, (2, edges))}


@network(23, 17, {"dense": {0: "batch"}, "sparse": {0: "batch"}, "bag": {0: "batch", 1: "bag"}}, batch=(3, 8, 1),
         bag=(4, 7, 2))
def recommender():
    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList([nn.Embedding(30, 8) for _ in range(3)])
            self.bottom = nn.Sequential(nn.Linear(6, 16), nn.PReLU(16), nn.BatchNorm1d(16), nn.Linear(16, 8))
            self.register_buffer("rows", torch.triu_indices(5, 5, 1))
            self.top = nn.Sequential(nn.Linear(18, 8), nn.Softplus(), nn.Linear(8, 1), nn.Sigmoid())

        def forward(self, dense, sparse, bag):
            parts = [self.bottom(dense)] + [table(sparse[:, i]) for i, table in enumerate(self.tables)]
            parts.append(self.tables[0](bag).mean(1))
            z = torch.stack(parts, 1)
            crossed = torch.einsum("bik,bjk->bij", z, z)[:, self.rows[0], self.rows[1]]
            return self.top(torch.cat([parts[0], crossed], 1))
    return Recommender(), lambda batch, bag: {"dense": randn(batch, 6), "sparse": ids(batch, 3, high=30),
                                              "bag": ids(batch, bag, high=30)}


@network(24, None, {"past": {0: "batch"}}, **BATCH)
def time_series():
    import transformers as t
    config = t.PatchTSTConfig(num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, d_model=16,
                              num_hidden_layers=2, num_attention_heads=4, ffn_dim=32, prediction_length=6)
    return (Called(t.PatchTSTForPrediction(config), "past_values", "prediction_outputs"),
            lambda batch: {"past": randn(batch, 32, 3)})


# ---------------------------------------------------------------------- one operation or few


@network((20, 24), (13, 16, 18), {"x": {0: "rows", 1: "columns"}}, rows=(6, 13, 2), columns=(5, 9, 3))
def masks():
    class Masks(nn.Module):
        def forward(self, x):
            mask = x > 0
            places = torch.nonzero(mask)
            chosen = x[mask]
            rows = x[(x.sum(1) > -100.0) & (x[:, 0] > -0.5)]
            return places, chosen, chosen.sum(), rows, rows.cumsum(0), torch.where(mask, x, -x).sort(-1, descending=True)[0]
    return Masks(), lambda rows, columns: {"x": randn(rows, columns)}


@network(21, (14, 17), {"x": {0: "rows", 1: "columns"}}, rows=(6, 13, 2), columns=(7, 9, 4))
def sorting():
    class Sorting(nn.Module):
        def forward(self, x):
            values, places = x.sort(1, descending=True)
            top, at = x.topk(2, 1, largest=False)
            return values, places, top, at, x.argsort(0), x.cumsum(1), x.cumsum(0).flip(0), x.min(1)[0], x.max(0)[1]
    return Sorting(), lambda rows, columns: {"x": randn(rows, columns)}


@network(22, (16, 18), {"x": {0: "rows"}, "at": {0: "count"}}, rows=(6, 13, 4), count=(3, 5, 2))
def scatters():
    class Scatters(nn.Module):
        def forward(self, x, at):
            a = x.clone()
            a[at] = 1.5
            b = x.index_put((at, at % 4), torch.arange(at.shape[0], dtype=torch.float32))
            c = x.scatter(0, at[:, None].expand(-1, 4), -x[at])
            d = x.clone()
            d[1:, ::2] = d[1:, ::2] * 2 + 1
            d[:, -1] = 7.0
            e = x.index_fill(1, torch.tensor([0, 2]), 3.0)
            f = x.masked_fill(x < 0, float("-inf")).softmax(1)
            return a, b, c, d, e, f, x.gather(0, at[:, None].expand(-1, 4))
    return Scatters(), lambda rows, count: {"x": randn(rows, 4), "at": torch.randperm(rows)[:count]}


@network(23, (16, 20), {"image": NCHW, "grid": {0: "batch", 1: "high", 2: "wide"}}, batch=(2, 3, 1), height=(9, 14, 4),
         width=(7, 12, 5), high=(6, 10, 3), wide=(8, 5, 4))
def grids():
    class Grids(nn.Module):
        def forward(self, image, grid):
            return (F.grid_sample(image, grid, "bilinear", "zeros", False),
                    F.grid_sample(image, grid, "nearest", "border", False),
                    F.grid_sample(image, grid, "bicubic", "reflection", True))
    return Grids(), lambda batch, height, width, high, wide: {
        "image": randn(batch, 3, height, width), "grid": 2.4 * torch.rand(batch, high, wide, 2) - 1.2}


@network(20, None, {"image": {0: "batch"}}, **BATCH)
def spatial_transformer():
    class Spatial(nn.Module):
        def __init__(self):
            super().__init__()
            self.locate = nn.Sequential(nn.Conv2d(1, 4, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(),
                                        nn.Linear(36, 6), nn.Tanh())

        def forward(self, image):
            theta = self.locate(image).view(-1, 2, 3)
            grid = F.affine_grid(theta, list(image.shape), align_corners=False)
            return F.grid_sample(image, grid, padding_mode="border", align_corners=False)
    return Spatial(), lambda batch: {"image": randn(batch, 1, 17, 15)}


@network((18, 22), (13, 18), {"image": NCHW}, batch=(2, 3, 1), height=(9, 14, 4), width=(7, 12, 5))
def interpolations():
    class Interpolations(nn.Module):
        def forward(self, image):
            high, wide = image.shape[2:]
            return (F.interpolate(image, scale_factor=2.0, mode="nearest"),
                    F.interpolate(image, size=(high * 2 + 1, wide + 3), mode="bilinear", align_corners=False),
                    F.interpolate(image, size=(high * 3, wide * 2), mode="bilinear", align_corners=True),
                    F.interpolate(image, size=(high + 5, 11), mode="bicubic", align_corners=False),
                    F.interpolate(image, scale_factor=(1.5, 2.5), mode="bilinear", recompute_scale_factor=True))
    return Interpolations(), image


@network(24, (14, 17), {"image": NCHW}, batch=(2, 3, 1), height=(12, 17, 8), width=(9, 16, 8))
def pooling():
    class Pooling(nn.Module):
        def forward(self, image):
            return (F.max_pool2d(image, 3, 2, 1, ceil_mode=True), F.max_pool2d(image, 3, 1, 1, dilation=2),
                    F.avg_pool2d(image, 3, 2, 1, count_include_pad=False),
                    F.avg_pool2d(image, (3, 2), (2, 1), ceil_mode=False),
                    F.adaptive_avg_pool2d(image, 1), F.adaptive_max_pool2d(image, 1), F.lp_pool2d(image.abs(), 2, 2),
                    F.max_pool1d(image.flatten(2), 4, 3), F.local_response_norm(image, 3))
    return Pooling(), image


@network(25, (13, 18), {"image": NCHW}, batch=(2, 3, 1), height=(12, 17, 8), width=(9, 16, 8))
def patches():
    class Patches(nn.Module):
        def forward(self, image):
            columns = F.unfold(image, 3, padding=1, stride=2)
            return (columns, F.pixel_unshuffle(image[:, :, :8, :8], 2),
                    F.pad(image, (1, 2, 0, 3), "reflect"), F.pad(image, (2, 2, 1, 1), "replicate"),
                    F.pad(image, (1, 1, 1, 1), "constant", 0.5), image.roll((1, -2), (2, 3)), image.flip(3))
    return Patches(), image


@network((20, 23), (14, 17), {"x": {0: "batch", 1: "rows"}, "y": {0: "batch", 1: "columns"}}, batch=(2, 3, 1),
         rows=(4, 9, 2), columns=(5, 8, 3))
def einsums():
    class Einsums(nn.Module):
        def forward(self, x, y):
            heads = x.view(x.shape[0], x.shape[1], 2, 4)
            other = y.view(y.shape[0], y.shape[1], 2, 4)
            scores = torch.einsum("bihd,bjhd->bhij", heads, other)
            mixed = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), other).flatten(2)
            return (scores, mixed, torch.einsum("bik,bjk->ij", x, y), torch.einsum("bii->bi", scores[:, 0, :, :1]
                    .expand(-1, -1, x.shape[1])), x @ y.transpose(1, 2), torch.tensordot(x, y, ([0, 2], [0, 2])))
    return Einsums(), lambda batch, rows, columns: {"x": randn(batch, rows, 8), "y": randn(batch, columns, 8)}


@network((18, 24), None, {"x": {0: "batch", 1: "length"}}, batch=(2, 3, 1), length=(16, 30, 7))
def fourier():
    class Fourier(nn.Module):
        def forward(self, x):
            spectrum = torch.fft.rfft(x, dim=1)
            whole = torch.view_as_real(torch.fft.fft(x, dim=1))
            return torch.view_as_real(spectrum), spectrum.abs(), whole, torch.fft.fft2(x).real
    return Fourier(), lambda batch, length: {"x": randn(batch, length, 6)}


@network(22, 18, {"x": {0: "rows", 1: "columns"}}, rows=(4, 9, 2), columns=(6, 11, 3))
def arithmetic():
    class Arithmetic(nn.Module):
        def forward(self, x):
            whole = (x * 10).long()
            return (torch.div(whole, 3, rounding_mode="floor"), torch.div(whole, 3, rounding_mode="trunc"),
                    whole % 4, torch.remainder(x, 0.7), torch.fmod(x, 0.7), x.round(), x.sign(),
                    torch.pow(x.abs(), 1.7), torch.atan2(x, x.flip(0)), x.erf(), x.exp().log1p(), x.abs().rsqrt().clamp(max=9),
                    F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.hardswish(x), F.softplus(x, 2, 1.5),
                    F.hardtanh(x, -0.3, 0.4), F.logsigmoid(x), F.celu(x, 0.7), F.softshrink(x), F.glu(x.repeat(1, 2), 1),
                    torch.logsumexp(x, 1), x.std(1), x.var(0, unbiased=False), x.prod(1), x.norm(dim=1), x.amin(0),
                    torch.triu(x), torch.tril(x, -1), torch.isnan(x), (x > 0) ^ (x < 1), whole & 3, whole << 1,
                    x.all(1), (x > 2).any(), torch.lerp(x, x * 2, 0.3), torch.addmm(x[:, :2], x, x.t()[:, :2], beta=0.5, alpha=2.0))
    return Arithmetic(), lambda rows, columns: {"x": randn(rows, columns)}


@network(25, (14, 18), {"x": {0: "rows", 1: "columns"}}, rows=(4, 9, 2), columns=(6, 11, 3))
def shapes():
    class Shapes(nn.Module):
        def forward(self, x):
            rows, columns = x.shape
            steps = torch.arange(columns, dtype=torch.float32)
            table = steps[None, :] / (torch.arange(rows)[:, None] + 1)
            return (x.reshape(-1, 1, columns).expand(-1, 3, -1).flatten(0, 1), x.repeat(2, 3), x.repeat_interleave(2, 0),
                    x.unsqueeze(1).transpose(1, 2), torch.stack([x, table]), torch.cat([x, x[:1], table], 0),
                    x.new_zeros(columns, rows) + 1.0, torch.ones(rows, 2).cumsum(0), x[:, -2:], x[..., ::2], x[1:, None],
                    torch.linspace(0, 1, 5), F.one_hot(torch.arange(rows) % 3, 3), x.narrow(1, 1, 2), table.movedim(0, 1),
                    torch.full((rows, 2), 3.0), torch.eye(4), x.numel() * torch.ones(1), *x.split([1, columns - 1], 1))
    return Shapes(), lambda rows, columns: {"x": randn(rows, columns)}


@network(23, (15, 17), {"q": {0: "batch", 2: "length"}, "k": {0: "batch", 2: "all"}, "v": {0: "batch", 2: "all"},
                        "mask": {2: "length", 3: "all"}}, batch=(2, 3, 1), length=(4, 9, 1), all=(7, 20, 3))
def attention():
    class Attention(nn.Module):
        def forward(self, q, k, v, mask):
            return (F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
                    F.scaled_dot_product_attention(q, k, v, attn_mask=mask > 0, scale=0.3),
                    F.scaled_dot_product_attention(q, q, q, is_causal=True))

    def feed(batch, length, all):
        mask = randn(1, 1, length, all)
        mask[..., 0] = 1.0
        return {"q": randn(batch, 2, length, 8), "k": randn(batch, 2, all, 8), "v": randn(batch, 2, all, 8), "mask": mask}
    return Attention(), feed


@network(20, (13, 17), {"x": {0: "batch", 2: "length"}}, batch=(2, 3, 1), length=(11, 24, 6))
def normalisations():
    class Normalisations(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.BatchNorm1d(6), nn.InstanceNorm1d(6, affine=True), nn.GroupNorm(3, 6),
                                         nn.GroupNorm(2, 6, affine=False), nn.InstanceNorm1d(6)])
            self.last = nn.ModuleList([nn.LayerNorm(6), nn.LayerNorm(6, elementwise_affine=False)])

        def forward(self, x):
            x = [layer(x) for layer in self.layers]
            return (*x, *(layer(x[0].transpose(1, 2)) for layer in self.last), F.normalize(x[0], p=2.0, dim=1),
                    F.cosine_similarity(x[0], x[1], 1))
    return Normalisations(), lambda batch, length: {"x": 1 + 2 * randn(batch, 6, length)}


@network(21, (14, 16), {"x": {0: "batch", 2: "length"}}, batch=(2, 3, 1), length=(11, 24, 6))
def convolutions():
    class Convolutions(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Conv1d(4, 6, 3, padding="same", padding_mode="circular")
            self.b = nn.Conv1d(6, 6, 4, 2, 1, dilation=1, groups=3)
            self.c = nn.ConvTranspose1d(6, 4, 5, 3, 1, 2, groups=2, dilation=1)
            self.d = nn.Conv1d(4, 8, 2, dilation=2, padding=2)
            self.e = nn.ConvTranspose2d(1, 2, (3, 2), (2, 1), (1, 0), dilation=(1, 2))
            self.f = nn.Conv3d(2, 2, (1, 3, 2))

        def forward(self, x):
            y = self.c(F.relu(self.b(self.a(x))))
            z = self.e(x[:, None])
            return y, self.d(y), z, self.f(z[:, :, None])
    return Convolutions(), lambda batch, length: {"x": randn(batch, 4, length)}
