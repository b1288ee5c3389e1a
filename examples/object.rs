//===- object.rs - A layer as an object of a program in Rust --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   linattn-compile layer.mlir --target=cpu --emit=obj -o layer.o
//   linattn-compile layer.mlir --target=cpu --emit=header -o layer.h
//   cc -DLINATTN_FUNCTION= -x c -c layer.h -o layer_c.o
//   rustc -O object.rs -C link-arg=layer.o -C link-arg=layer_c.o -C link-arg=-lm
//
// Compares the last token's output with the quadratic meaning.
//
//===----------------------------------------------------------------------===//

use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

/// `linattn_array` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
struct Array {
    data: *mut c_void,
    shape: *const i64,
    strides: *const i64,
}

extern "C" {
    fn layer(
        query: Array,
        key: Array,
        value: Array,
        output: Array,
        message: *mut c_char,
        size: usize,
    ) -> c_int;
}

const SHAPE: [i64; 4] = [2, 8, 100, 64];
const TOKENS: usize = 100;
const SIZE: usize = 64;

fn array(data: &[f32], shape: &[i64; 4]) -> Array {
    Array {
        data: data.as_ptr() as *mut c_void,
        shape: shape.as_ptr(),
        strides: ptr::null(),
    }
}

/// Calls the layer; an error is what does not fit.
fn call(query: Array, key: Array, value: Array, output: &mut [f32]) -> Result<(), String> {
    let mut message = [0 as c_char; 256];
    let output = Array {
        data: output.as_mut_ptr() as *mut c_void,
        shape: ptr::null(),
        strides: ptr::null(),
    };
    let status = unsafe { layer(query, key, value, output, message.as_mut_ptr(), message.len()) };
    if status == 0 {
        return Ok(());
    }
    let text = unsafe { CStr::from_ptr(message.as_ptr()) };
    Err(text.to_string_lossy().into_owned())
}

/// elu(x) + 1
fn map(x: f32) -> f64 {
    let x = f64::from(x);
    if x > 0.0 {
        x + 1.0
    } else {
        x.exp()
    }
}

/// The largest difference of a head's last output from its definition.
fn difference(q: &[f32], k: &[f32], v: &[f32], o: &[f32]) -> f64 {
    let last = (TOKENS - 1) * SIZE;
    let mut sums = [0.0; SIZE];
    let mut weights = 1e-6;
    for t in 0..TOKENS {
        let weight: f64 = (0..SIZE).map(|i| map(q[last + i]) * map(k[t * SIZE + i])).sum();
        weights += weight;
        for i in 0..SIZE {
            sums[i] += weight * f64::from(v[t * SIZE + i]);
        }
    }
    (0..SIZE).fold(0.0, |largest, i| {
        (sums[i] / weights - f64::from(o[last + i])).abs().max(largest)
    })
}

fn main() {
    let count = SHAPE.iter().product::<i64>() as usize;
    let wave = |step: f32, shift: f32| -> Vec<f32> {
        (0..count).map(|i| (step * i as f32 + shift).sin()).collect()
    };
    let (q, k, v) = (wave(0.1, 0.0), wave(0.3, 1.5), wave(0.7, 0.0));
    let mut o = vec![0.0; count];
    call(array(&q, &SHAPE), array(&k, &SHAPE), array(&v, &SHAPE), &mut o).unwrap();
    let head = TOKENS * SIZE;
    let largest = (0..count / head).fold(0.0, |largest: f64, h| {
        let part = h * head..(h + 1) * head;
        difference(&q[part.clone()], &k[part.clone()], &v[part.clone()], &o[part]).max(largest)
    });
    println!("largest difference from the definition: {:.1e}", largest);
    assert!(largest < 1e-5);

    // Operands that do not fit are refused.
    let fewer = [SHAPE[0], SHAPE[1], SHAPE[2] / 2, SHAPE[3]];
    let refused = call(array(&q, &SHAPE), array(&k, &fewer), array(&v, &SHAPE), &mut o);
    println!("refused: {}", refused.unwrap_err());
}
