"""Eight seeds of model B with rules on WordNet's birds: one program for all.

python -m launch.sweep --sweep=experiments/sweeps/elkb_seeds.py
python -m launch.collect runs/sweeps/elkb_seeds --figures="mrr filtered both"
"""

EXPERIMENT = "experiments.elkb"


def sweep(add):
  """Adds the seeds, each with held-out facts of its own."""
  add.seeds(
    8, below="bird.n.01", held_out=50, num_negatives=5, epochs=10, eval_every=5
  )
