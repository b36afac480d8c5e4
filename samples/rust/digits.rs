// SPDX-License-Identifier: Apache-2.0
//
// Classifies handwritten digits by the crate capi/rust: prints the class of the first held-out image and its
// probability, then how many of all are right. Argument: the folder with digits.onnx and digits_test.bin.
use std::error::Error;

use pyflame_rt::{Session, Tensor};

/// Label and 64 pixels (0..16) of each image, one after the other; train.py describes the layout.
fn read_digits(path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut bytes = std::fs::read(path)
        .map_err(|e| format!("{} cannot be opened: {}; the argument is the folder of the digits", path, e))?;
    let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if bytes.len() < 20 || &bytes[..8] != b"PFRTDIG1" || number(8) == 0 || number(12) != 8 || number(16) != 8 {
        return Err(format!("{} is not a file of 8x8 digits", path).into());
    }
    let size = number(8) as usize * 65;
    bytes.drain(..20);
    if bytes.len() < size {
        return Err(format!("{} is truncated", path).into());
    }
    bytes.truncate(size);
    Ok(bytes)
}

fn classify(session: &Session, pixels: &[u8]) -> Result<(usize, f32), pyflame_rt::Error> {
    let image = Tensor::new(&[1, 1, 8, 8], pixels.iter().map(|p| f32::from(*p) / 16.0).collect())?;
    let outputs = session.run(&[("image", &image)])?;
    let probabilities = outputs["probabilities"].data::<f32>()?;
    let mut best = 0;
    for c in 1..10 {
        best = if probabilities[c] > probabilities[best] { c } else { best };
    }
    Ok((best, probabilities[best]))
}

fn work() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).unwrap_or(".".to_string());
    let digits = read_digits(&(folder.clone() + "/digits_test.bin"))?;
    let session = Session::load(folder + "/digits.onnx", &[])?;
    let count = digits.len() / 65;
    let mut right = 0;
    for (i, digit) in digits.chunks(65).enumerate() {
        let (best, probability) = classify(&session, &digit[1..])?;
        if i == 0 {
            println!("the first image is a {} with probability {:.6}", best, probability);
        }
        right += usize::from(best == usize::from(digit[0]));
    }
    println!("{} of {} held-out images are right", right, count);
    println!("accuracy {:.1} %", 100.0 * right as f64 / count as f64);
    Ok(())
}

fn main() {
    if let Err(error) = work() {
        eprintln!("digits: {}", error);
        std::process::exit(1);
    }
}
