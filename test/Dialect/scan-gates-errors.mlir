// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// One function per numbered constraint of `linattn.scan`, from S11 on: its name
// ends in the number.

func.func @scan_s11_decay_head(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<3xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and state to have the same head count, but got 3 and 4}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<3xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_decay_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<1x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and key to have the same batch size, but got 1 and 2}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<1x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_decay_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<2x2x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and state to have the same head count, but got 2 and 4}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x2x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_decay_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<2x4x5xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and key to have the same sequence length, but got 5 and 6}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x5xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_decay_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and key to have the same head size, but got 16 and 8}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_value_decay_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %value_decay: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected value_decay to be [B, H, T, V], but got 'tensor<2x4x6xf32>'}}
  %r:2 = linattn.scan %q, %k, %v value_decay(%value_decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_value_decay(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %value_decay: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected value_decay and value to have the same head size, but got 8 and 16}}
  %r:2 = linattn.scan %q, %k, %v value_decay(%value_decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_write(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %write: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected write and value to have the same head size, but got 8 and 16}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) write(%write) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_write_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %write: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected write to be [B, H, T, V], but got 'tensor<2x4x6xf32>'}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) write(%write) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_beta_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<4xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected beta to be [B, H, T] or [B, H, T, V], but got 'tensor<4xf32>'}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_beta(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected beta and value to have the same head size, but got 8 and 16}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_a_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6xf32>, %b: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a to be [B, H, T, K], but got 'tensor<2x4x6xf32>'}}
  %r:2 = linattn.scan %q, %k, %v a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_a(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x16xf32>, %b: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a and key to have the same head size, but got 16 and 8}}
  %r:2 = linattn.scan %q, %k, %v a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_b_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x8xf32>, %b: tensor<4xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected b to be [B, H, T, K], but got 'tensor<4xf32>'}}
  %r:2 = linattn.scan %q, %k, %v a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<4xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_b(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x8xf32>, %b: tensor<2x1x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected b and state to have the same head count, but got 1 and 4}}
  %r:2 = linattn.scan %q, %k, %v a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x1x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_erase_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %erase: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected erase to be [B, H, T, K], but got 'tensor<2x4x6xf32>'}}
  %r:2 = linattn.scan %q, %k, %v erase(%erase) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_erase(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %erase: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected erase and key to have the same head size, but got 16 and 8}}
  %r:2 = linattn.scan %q, %k, %v erase(%erase) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_bonus_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %bonus: tensor<2x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected bonus and state to have the same head count, but got 2 and 4}}
  %r:2 = linattn.scan %q, %k, %v bonus(%bonus) readout(exclusive) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_bonus_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %bonus: tensor<4x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected bonus and key to have the same head size, but got 16 and 8}}
  %r:2 = linattn.scan %q, %k, %v bonus(%bonus) readout(exclusive) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_mask_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %mask: tensor<1x6xi1>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected mask and key to have the same batch size, but got 1 and 2}}
  %r:2 = linattn.scan %q, %k, %v mask(%mask) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<1x6xi1>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_mask_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %mask: tensor<2x7xi1>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected mask and key to have the same sequence length, but got 7 and 6}}
  %r:2 = linattn.scan %q, %k, %v mask(%mask) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x7xi1>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s12_beta(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected beta only with update(delta) or update(oja), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s12_erase(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %erase: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected erase only with update(delta), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v erase(%erase) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s12_write(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %write: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected write only with update(delta), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v write(%write) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s12_delta(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected update(delta) with beta or erase, but got neither}}
  %r:2 = linattn.scan %q, %k, %v update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_a(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a only with update(dplr), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v a(%a) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_b(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %b: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected b only with update(dplr), but got update(delta)}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) b(%b) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_missing_b(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected update(dplr) with both a and b, but got only a}}
  %r:2 = linattn.scan %q, %k, %v a(%a) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_missing_a(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %b: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected update(dplr) with both a and b, but got only b}}
  %r:2 = linattn.scan %q, %k, %v b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_missing(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected update(dplr) with both a and b, but got neither}}
  %r:2 = linattn.scan %q, %k, %v update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s14(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %bonus: tensor<4x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected bonus only with readout(exclusive), but got readout(inclusive)}}
  %r:2 = linattn.scan %q, %k, %v bonus(%bonus) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s15(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %value_decay: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected value_decay only with update(add) or update(oja), but got update(delta)}}
  %r:2 = linattn.scan %q, %k, %v value_decay(%value_decay) beta(%beta) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s16_update(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected normalize only with update(add) and readout(inclusive), but got update(delta) and readout(inclusive)}}
  %r:3 = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s16_readout(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected normalize only with update(add) and readout(inclusive), but got update(add) and readout(exclusive)}}
  %r:3 = linattn.scan %q, %k, %v readout(exclusive) into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s17_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %cu_seqlens: tensor<3xi32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  %r:2 = linattn.scan %q, %k, %v cu_seqlens(%cu_seqlens) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<3xi32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s17_state(%q: tensor<1x4x6x8xf32>, %k: tensor<1x4x6x8xf32>, %v: tensor<1x4x6x16xf32>, %cu_seqlens: tensor<3xi32>, %o: tensor<1x4x6x16xf32>, %s: tensor<3x4x8x16xf32>) {
  // expected-error @+1 {{expected the batch size of state to be one less than the length of cu_seqlens (3), but got 3}}
  %r:2 = linattn.scan %q, %k, %v cu_seqlens(%cu_seqlens) into(%o) init(%s)
    : (tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x16xf32>, tensor<3xi32>, tensor<1x4x6x16xf32>, tensor<3x4x8x16xf32>)
    -> (tensor<1x4x6x16xf32>, tensor<3x4x8x16xf32>)
  return
}

// -----

func.func @scan_s18(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected transition(before) only with update(dplr), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v transition(before) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s19(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected scale to be 0 or a normal number of 'f32', but got}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {scale = 0xFFF0000000000000 : f64}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_gate_rank(%q: tensor<2x4x6x8xf32>, %g: tensor<2x4xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{operand #3 must be [H], [B, H, T] or [B, H, T, D] gate as a ranked tensor or memref of f16, bf16, f32 or f64, but got 'tensor<2x4xf32>'}}
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
  return
}

// -----

func.func @scan_mixture(%q: memref<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected all operands to be tensors or all to be buffers, but got a mixture}}
  %r = linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x4x6x8xf32>, memref<2x4x6x8xf32>, memref<2x4x6x8xf32>, memref<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

func.func @scan_result_type(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected type of operand #4 ('tensor<2x4x8x8xf32>') to match type of corresponding result ('tensor<2x4x8x?xf32>')}}
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x8x?xf32>)
  return
}

// -----

func.func @scan_unknown_update(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected one of [add, delta, dplr, oja] for how a token is written into the state, got: gamma}}
  %r:2 = linattn.scan %q, %q, %q update(gamma) into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
  return
}
