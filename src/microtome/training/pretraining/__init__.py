"""The parts of pre-training: text, rows, schedule, step, optimiser, checkpoint, evaluation, card."""
