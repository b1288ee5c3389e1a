// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// One function per numbered constraint of the ops of a chunk: its name holds the
// number.

func.func @pack_cp1(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3xf32>) {
  // expected-error @+1 {{expected input and output to be both rows or both numbers, but got}}
  linattn.chunk.pack %a into(%b) : (memref<2x4x3x8xf32>, memref<2x4x3xf32>) -> ()
  return
}

// -----

func.func @pack_cp2_tokens(%a: memref<2x4x3x8xf32>, %b: memref<2x4x5x8xf32>) {
  // expected-error @+1 {{expected input and output to have the same number of tokens, but got 3 and 5}}
  linattn.chunk.pack %a into(%b) : (memref<2x4x3x8xf32>, memref<2x4x5x8xf32>) -> ()
  return
}

// -----

func.func @pack_cp2_mask(%a: memref<2x4x3x8xf32>, %b: memref<1x3xi1>, %c: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected mask and output to have the same batch size, but got 1 and 2}}
  linattn.chunk.pack %a mask(%b) into(%c) : (memref<2x4x3x8xf32>, memref<1x3xi1>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @pack_cp3(%a: memref<2x3x3x8xf32>, %b: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected head counts of input and output to divide one another, but got 3 and 4}}
  linattn.chunk.pack %a into(%b) : (memref<2x3x3x8xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @pack_cp3_more(%a: memref<2x8x3x8xf32>, %b: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected the head count of output to be the largest of those of input and output (8 and 4), but got 4}}
  linattn.chunk.pack %a into(%b) : (memref<2x8x3x8xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @pack_cp3_heads(%a: memref<2xf32>, %b: memref<2x4x3xf32>) {
  // expected-error @+1 {{expected input and output to have the same head count, but got 2 and 4}}
  linattn.chunk.pack %a into(%b) : (memref<2xf32>, memref<2x4x3xf32>) -> ()
  return
}

// -----

func.func @pack_cp3_shift(%a: memref<2x4x3x8xf32>, %b: memref<2x2x3xf32>, %c: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected shift and output to have the same head count, but got 2 and 4}}
  linattn.chunk.pack %a shift(%b) into(%c) : (memref<2x4x3x8xf32>, memref<2x2x3xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @pack_cp4(%a: memref<2x4x3xf32>, %b: memref<2x4x3x8xf32>, %c: memref<2x4x3xf32>) {
  // expected-error @+1 {{expected a gate [B, H, C] beside numbers, but got}}
  linattn.chunk.pack %a gate(%b) into(%c) : (memref<2x4x3xf32>, memref<2x4x3x8xf32>, memref<2x4x3xf32>) -> ()
  return
}

// -----

func.func @pack_cp5(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected fill only with a mask, but got one without}}
  linattn.chunk.pack %a into(%b) {fill = 1.0} : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @pack_cp8_gate(%a: memref<2x4x3x8xf32>, %b: memref<2x4x5x8xf32>) {
  // expected-error @+1 {{expected padded with an input of tokens and without shift, gate, mask and reverse, but got a gate}}
  linattn.chunk.pack %a gate(%b) into(%b) {padded} : (memref<2x4x3x8xf32>, memref<2x4x5x8xf32>, memref<2x4x5x8xf32>) -> ()
  return
}

// -----

func.func @pack_cp8_tokens(%a: memref<2x4x6x8xf32>, %b: memref<2x4x5x8xf32>) {
  // expected-error @+1 {{expected an input of at most 5 tokens, the rows of the output, but got 6}}
  linattn.chunk.pack %a into(%b) {padded} : (memref<2x4x6x8xf32>, memref<2x4x5x8xf32>) -> ()
  return
}

// -----

func.func @pack_cp6(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected scale to be 0 or a normal number of 'f32', but got 1.000000e+300}}
  linattn.chunk.pack %a into(%b) {scale = 1.0e300} : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @unpack_cu1(%a: memref<2x4x3x8xf32>, %b: memref<2x2x3x8xf32>) {
  // expected-error @+1 {{expected rows and output to have the same head count, but got 4 and 2}}
  linattn.chunk.unpack %a into(%b) : (memref<2x4x3x8xf32>, memref<2x2x3x8xf32>) -> ()
  return
}

// -----

func.func @unpack_cu2(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x1xf32>, %c: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected a denominator exactly with normalize, but got a denominator without normalize}}
  linattn.chunk.unpack %a denominator(%b) into(%c) : (memref<2x4x3x8xf32>, memref<2x4x3x1xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @unpack_cu2_none(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected a denominator exactly with normalize, but got normalize without a denominator}}
  linattn.chunk.unpack %a into(%b) {normalize = #linattn.normalize<eps = 1.0e-6>} : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @unpack_cu2_columns(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x8xf32>, %c: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected denominator to have one column, but got 8}}
  linattn.chunk.unpack %a denominator(%b) into(%c) {normalize = #linattn.normalize<eps = 1.0e-6>} : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @unpack_cu3(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x1xf32>, %c: memref<2x4x3xf32>, %d: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected running_max only with abs_floor, but got another denominator}}
  linattn.chunk.unpack %a denominator(%b) running_max(%c) into(%d) {normalize = #linattn.normalize<eps = 1.0e-6>} : (memref<2x4x3x8xf32>, memref<2x4x3x1xf32>, memref<2x4x3xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @unpack_cu4(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x1xf64>, %c: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected rows and denominator to have the same element type, but got}}
  linattn.chunk.unpack %a denominator(%b) into(%c) {normalize = #linattn.normalize<eps = 1.0e-6>} : (memref<2x4x3x8xf32>, memref<2x4x3x1xf64>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @decay_cd1(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3xf32>, %c: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected rows and output to have the same head size, but got 8 and 5}}
  linattn.chunk.decay %a by(%b) into(%c) : (memref<2x4x3x8xf32>, memref<2x4x3xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @decay_cd2(%a: memref<2x4x3x8xf32>, %b: memref<2x4x5xf32>, %c: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected decay and rows to have the same number of tokens, but got 5 and 3}}
  linattn.chunk.decay %a by(%b) into(%c) : (memref<2x4x3x8xf32>, memref<2x4x5xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @decay_cd3(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3xf32>, %c: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected either before or to_end, but got both}}
  linattn.chunk.decay %a by(%b) into(%c) {before, to_end} : (memref<2x4x3x8xf32>, memref<2x4x3xf32>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @decay_cd4(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3xf64>, %c: memref<2x4x3x8xf32>) {
  // expected-error @+1 {{expected rows and decay to have the same element type, but got}}
  linattn.chunk.decay %a by(%b) into(%c) : (memref<2x4x3x8xf32>, memref<2x4x3xf64>, memref<2x4x3x8xf32>) -> ()
  return
}

// -----

func.func @stabilize_cm1(%a: memref<2x4x3xf32>, %b: memref<2x4x3xf32>, %c: memref<2x4x3xf32>, %d: memref<2x2xf32>) {
  // expected-error @+1 {{expected running_max and maxima to have the same head count, but got 2 and 4}}
  linattn.chunk.stabilize %a into(%b, %c) init(%d) : (memref<2x4x3xf32>, memref<2x4x3xf32>, memref<2x4x3xf32>, memref<2x2xf32>) -> ()
  return
}

// -----

func.func @stabilize_cm1_tokens(%a: memref<2x4x5x8xf32>, %b: memref<2x4x3xf32>, %c: memref<2x4x3xf32>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{expected magnitude and maxima to have the same number of tokens, but got 5 and 3}}
  linattn.chunk.stabilize %a into(%b, %c) init(%d) : (memref<2x4x5x8xf32>, memref<2x4x3xf32>, memref<2x4x3xf32>, memref<2x4xf32>) -> ()
  return
}

// -----

func.func @stabilize_cm2(%a: memref<2x4x3xf32>, %b: memref<2x4x3x8xf32>, %c: memref<2x4x3xf32>, %d: memref<2x4xf32>) {
  // expected-error @+1 {{expected fade to have rank 3 as the decay, but got}}
  linattn.chunk.stabilize %a into(%b, %c) init(%d) : (memref<2x4x3xf32>, memref<2x4x3x8xf32>, memref<2x4x3xf32>, memref<2x4xf32>) -> ()
  return
}

// -----

func.func @stabilize_cm2_features(%a: memref<2x4x3xf32>, %b: memref<2x4x3x5xf32>, %c: memref<2x4x3x8xf32>, %d: memref<2x4x3xf32>, %e: memref<2x4xf32>) {
  // expected-error @+1 {{expected fade and decay to have the same head size, but got 8 and 5}}
  linattn.chunk.stabilize %a decay(%b) into(%c, %d) init(%e) {steady} : (memref<2x4x3xf32>, memref<2x4x3x5xf32>, memref<2x4x3x8xf32>, memref<2x4x3xf32>, memref<2x4xf32>) -> ()
  return
}

// -----

func.func @stabilize_cm3(%a: memref<2x4x3xf32>, %b: memref<2x4x3x8xf32>, %c: memref<2x4x3x8xf32>, %d: memref<2x4x3xf32>, %e: memref<2x4xf32>) {
  // expected-error @+1 {{expected a decay [B, H, C] without steady, but got}}
  linattn.chunk.stabilize %a decay(%b) into(%c, %d) init(%e) : (memref<2x4x3xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3xf32>, memref<2x4xf32>) -> ()
  return
}

// -----

func.func @stabilize_cm4(%a: memref<2x4x3xf32>, %b: memref<2x4x3xf32>, %c: memref<2x4x3xf32>, %d: memref<2x4xf64>) {
  // expected-error @+1 {{expected magnitude and running_max to have the same element type, but got}}
  linattn.chunk.stabilize %a into(%b, %c) init(%d) : (memref<2x4x3xf32>, memref<2x4x3xf32>, memref<2x4x3xf32>, memref<2x4xf64>) -> ()
  return
}

// -----

func.func @scores_cs1(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x5xf32>, %c: memref<2x4x3x3xf32>) {
  // expected-error @+1 {{expected keys and rows to have the same head size, but got 5 and 8}}
  linattn.chunk.scores %a, %b into(%c) : (memref<2x4x3x8xf32>, memref<2x4x3x5xf32>, memref<2x4x3x3xf32>) -> ()
  return
}

// -----

func.func @scores_cs2(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x8xf32>, %c: memref<2x4x3x4xf32>) {
  // expected-error @+1 {{expected output and rows to have the same number of tokens, but got 4 and 3}}
  linattn.chunk.scores %a, %b into(%c) : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x4xf32>) -> ()
  return
}

// -----

func.func @scores_cs3(%a: memref<2x4x3x8xf32>, %b: memref<2x3x3x8xf32>, %c: memref<2x4x3x3xf32>) {
  // expected-error @+1 {{expected head counts of keys and rows to divide one another, but got 3 and 4}}
  linattn.chunk.scores %a, %b into(%c) : (memref<2x4x3x8xf32>, memref<2x3x3x8xf32>, memref<2x4x3x3xf32>) -> ()
  return
}

// -----

func.func @scores_cs4(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x8xf32>, %c: memref<4x5xf32>, %d: memref<2x4x3x3xf32>) {
  // expected-error @+1 {{expected bonus and rows to have the same head size, but got 5 and 8}}
  linattn.chunk.scores %a, %b bonus(%c) into(%d) {strict} : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<4x5xf32>, memref<2x4x3x3xf32>) -> ()
  return
}

// -----

func.func @scores_cs5_before(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x8xf32>, %c: memref<2x4x3xf32>, %d: memref<2x4x3x3xf32>) {
  // expected-error @+1 {{expected before only with strict, but got it without}}
  linattn.chunk.scores %a, %b decay(%c) into(%d) {before} : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3xf32>, memref<2x4x3x3xf32>) -> ()
  return
}

// -----

func.func @scores_cs5_bonus(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x8xf32>, %c: memref<4x8xf32>, %d: memref<2x4x3x3xf32>) {
  // expected-error @+1 {{expected a bonus only with strict, but got it without}}
  linattn.chunk.scores %a, %b bonus(%c) into(%d) : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<4x8xf32>, memref<2x4x3x3xf32>) -> ()
  return
}

// -----

func.func @scores_cs6(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x8xbf16>, %c: memref<2x4x3x3xf32>) {
  // expected-error @+1 {{expected rows and keys to have the same element type, but got}}
  linattn.chunk.scores %a, %b into(%c) : (memref<2x4x3x8xf32>, memref<2x4x3x8xbf16>, memref<2x4x3x3xf32>) -> ()
  return
}

// -----

func.func @solve_cv1(%a: memref<2x2x3x3xf32>, %b: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected scores and rows to have the same head count, but got 2 and 4}}
  linattn.chunk.solve %a into(%b) : (memref<2x2x3x3xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @solve_cv2(%a: memref<2x4x3x3xf32>, %b: memref<2x4x3x8xf32>, %c: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected gate and rows to have the same head size, but got 8 and 5}}
  linattn.chunk.solve %a gate(%b) into(%c) : (memref<2x4x3x3xf32>, memref<2x4x3x8xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @solve_cv3(%a: memref<2x4x3x3xf32>, %b: memref<2x4x3x5xf64>) {
  // expected-error @+1 {{expected scores and rows to have the same element type, but got}}
  linattn.chunk.solve %a into(%b) : (memref<2x4x3x3xf32>, memref<2x4x3x5xf64>) -> ()
  return
}

// -----

func.func @read_cr1(%a: memref<2x4x3x8xf32>, %b: memref<2x4x8x5xf32>, %c: memref<2x4x5x5xf32>) {
  // expected-error @+1 {{expected rows and output to have the same number of tokens, but got 3 and 5}}
  linattn.chunk.read %a, %b into(%c) : (memref<2x4x3x8xf32>, memref<2x4x8x5xf32>, memref<2x4x5x5xf32>) -> ()
  return
}

// -----

func.func @read_cr2(%a: memref<2x4x3x5xf32>, %b: memref<2x4x8x5xf32>, %c: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected rows and state to have the same head size, but got 5 and 8}}
  linattn.chunk.read %a, %b into(%c) : (memref<2x4x3x5xf32>, memref<2x4x8x5xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @read_cr2_transpose(%a: memref<2x4x3x8xf32>, %b: memref<2x4x8x5xf32>, %c: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected rows and state to have the same head size, but got 8 and 5}}
  linattn.chunk.read %a, %b into(%c) {transpose} : (memref<2x4x3x8xf32>, memref<2x4x8x5xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @read_cr3(%a: memref<2x4x3x8xf32>, %b: memref<2x4x8x5xf32>, %c: memref<2x4x3x3xf32>, %d: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected as many values as scores, but got 0 and 1}}
  linattn.chunk.read %a, %b scores(%c) into(%d) : (memref<2x4x3x8xf32>, memref<2x4x8x5xf32>, memref<2x4x3x3xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @read_cr3_values(%a: memref<2x4x3x8xf32>, %b: memref<2x4x8x5xf32>, %c: memref<2x4x3x3xf32>, %d: memref<2x4x3x8xf32>, %e: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected values and output to have the same head size, but got 8 and 5}}
  linattn.chunk.read %a, %b scores(%c) values(%d) into(%e) : (memref<2x4x3x8xf32>, memref<2x4x8x5xf32>, memref<2x4x3x3xf32>, memref<2x4x3x8xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @read_cr4(%a: memref<2x4x3x8xf32>, %b: memref<2x3x8x5xf32>, %c: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected head counts of state and output to divide one another, but got 3 and 4}}
  linattn.chunk.read %a, %b into(%c) : (memref<2x4x3x8xf32>, memref<2x3x8x5xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @read_cr5(%a: memref<2x4x3x8xf32>, %b: memref<2x4x8x5xf64>, %c: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected rows and state to have the same element type, but got}}
  linattn.chunk.read %a, %b into(%c) : (memref<2x4x3x8xf32>, memref<2x4x8x5xf64>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @update_cw1(%a: memref<2x4x3x8xf32>, %b: memref<2x4x8x5xf32>) {
  // expected-error @+1 {{expected as many values as keys, but got 0 and 1}}
  linattn.chunk.update keys(%a) into(%b) : (memref<2x4x3x8xf32>, memref<2x4x8x5xf32>) -> ()
  return
}

// -----

func.func @update_cw1_heads(%a: memref<2x2x3x8xf32>, %b: memref<2x4x3x5xf32>, %c: memref<2x4x8x5xf32>) {
  // expected-error @+1 {{expected keys and state to have the same head count, but got 2 and 4}}
  linattn.chunk.update keys(%a) values(%b) into(%c) : (memref<2x2x3x8xf32>, memref<2x4x3x5xf32>, memref<2x4x8x5xf32>) -> ()
  return
}

// -----

func.func @update_cw2(%a: memref<2x4x3x8xf32>, %b: memref<2x4x8x5xf32>) {
  // expected-error @+1 {{expected value_decay and state to have the same head size, but got 8 and 5}}
  linattn.chunk.update value_decay(%a) into(%b) : (memref<2x4x3x8xf32>, memref<2x4x8x5xf32>) -> ()
  return
}

// -----

func.func @update_cw3(%a: memref<2x4x3x8xf64>, %b: memref<2x4x3x5xf64>, %c: memref<2x4x8x5xf32>) {
  // expected-error @+1 {{expected state and keys to have the same element type, but got}}
  linattn.chunk.update keys(%a) values(%b) into(%c) : (memref<2x4x3x8xf64>, memref<2x4x3x5xf64>, memref<2x4x8x5xf32>) -> ()
  return
}

// -----

func.func @scores_cs7(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x3xf32>) {
  // expected-error @+1 {{expected summands of 2 matrices, but got 1}}
  linattn.chunk.scores %a, %a into(%b) {summands = array<i64: 1>} : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x3xf32>) -> ()
  return
}

// -----

func.func @scores_cs7_count(%a: memref<2x4x3x8xf32>, %b: memref<2x4x3x3xf32>) {
  // expected-error @+1 {{expected 1, 2 or 3 summands, but got 4}}
  linattn.chunk.scores %a, %a into(%b) {summands = array<i64: 1, 4>} : (memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x3xf32>) -> ()
  return
}

// -----

func.func @scores_cs7_type(%a: memref<2x4x3x8xf64>, %b: memref<2x4x3x3xf64>) {
  // expected-error @+1 {{expected summands only in f32, but got 'f64'}}
  linattn.chunk.scores %a, %a into(%b) {summands = array<i64: 1, 1>} : (memref<2x4x3x8xf64>, memref<2x4x3x8xf64>, memref<2x4x3x3xf64>) -> ()
  return
}

// -----

func.func @read_cr6(%a: memref<2x4x3x8xf32>, %b: memref<2x4x8x5xf32>, %c: memref<2x4x3x3xf32>, %d: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected summands of 4 matrices, but got 2}}
  linattn.chunk.read %a, %b scores(%c) values(%d) into(%d) {summands = array<i64: 1, 2>} : (memref<2x4x3x8xf32>, memref<2x4x8x5xf32>, memref<2x4x3x3xf32>, memref<2x4x3x5xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @read_cr7(%a: memref<2x4x3x8xf32>, %b: memref<2x4x8x5xf32>, %c: memref<2x4x3x5xf32>) {
  // expected-error @+1 {{expected decay and output to have the same head size, but got 8 and 5}}
  linattn.chunk.read %a, %b decay(%a) into(%c) : (memref<2x4x3x8xf32>, memref<2x4x8x5xf32>, memref<2x4x3x8xf32>, memref<2x4x3x5xf32>) -> ()
  return
}

// -----

func.func @update_cw4(%k: memref<2x4x3x8xf32>, %v: memref<2x4x3x5xf32>, %s: memref<2x4x8x5xf32>) {
  // expected-error @+1 {{expected 1, 2 or 3 summands, but got 0}}
  linattn.chunk.update keys(%k) values(%v) into(%s) {summands = array<i64: 0, 1>} : (memref<2x4x3x8xf32>, memref<2x4x3x5xf32>, memref<2x4x8x5xf32>) -> ()
  return
}
