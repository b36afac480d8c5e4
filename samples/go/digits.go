// SPDX-License-Identifier: Apache-2.0
//
// Classifies handwritten digits by the package capi/go: prints the class of the first held-out image and its
// probability, then how many of all are right. Argument: the folder with digits.onnx and digits_test.bin.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"

	"pyflamert"
)

type digit struct {
	Label  uint8
	Pixels [64]uint8 // 0..16
}

// The layout is described in samples/digits/train.py.
func readDigits(path string) ([]digit, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w; the argument is the folder of the digits", err)
	}
	var header struct {
		Magic                [8]byte
		Count, Height, Width uint32
	}
	file := bytes.NewReader(content)
	err = binary.Read(file, binary.LittleEndian, &header)
	if err != nil || string(header.Magic[:]) != "PFRTDIG1" || header.Count == 0 || header.Height != 8 ||
		header.Width != 8 {
		return nil, fmt.Errorf("%s is not a file of 8x8 digits", path)
	}
	if uint64(file.Len()) < uint64(header.Count)*65 {
		return nil, fmt.Errorf("%s is truncated", path)
	}
	digits := make([]digit, header.Count)
	return digits, binary.Read(file, binary.LittleEndian, digits)
}

func classify(session *pyflamert.Session, pixels [64]uint8) (best int, probability float32, err error) {
	data := make([]float32, 64)
	for p, pixel := range pixels {
		data[p] = float32(pixel) / 16
	}
	image := pyflamert.Tensor{Shape: []int64{1, 1, 8, 8}, Data: data}
	outputs, err := session.Run(context.Background(), map[string]pyflamert.Tensor{"image": image}, nil)
	if err != nil {
		return 0, 0, err
	}
	probabilities := outputs["probabilities"].Data.([]float32)
	for c := range probabilities {
		if probabilities[c] > probabilities[best] {
			best = c
		}
	}
	return best, probabilities[best], nil
}

func work() error {
	folder := "."
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	digits, err := readDigits(folder + "/digits_test.bin")
	if err != nil {
		return err
	}
	session, err := pyflamert.Load(folder+"/digits.onnx", nil)
	if err != nil {
		return err
	}
	defer session.Close()
	right := 0
	for i := range digits {
		best, probability, err := classify(session, digits[i].Pixels)
		if err != nil {
			return err
		}
		if i == 0 {
			fmt.Printf("the first image is a %d with probability %.6f\n", best, probability)
		}
		if best == int(digits[i].Label) {
			right++
		}
	}
	fmt.Printf("%d of %d held-out images are right\n", right, len(digits))
	fmt.Printf("accuracy %.1f %%\n", 100*float64(right)/float64(len(digits)))
	return nil
}

func main() {
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "digits:", err)
		os.Exit(1)
	}
}
