"""Relatives of softmax attention: Linformer, Nyströmformer, FNet."""
