"""A weighter with a round of its own, made of trials.

aang --plugin aang_plugin_duel.py train --weighter duel --set duel.k=5
"""

from aang_core import Weighter, hookimpl


class Duel(Weighter):
    """Tries the end task alone and with one objective, each for k steps, and keeps the better."""

    def __init__(self, end_task, auxiliaries, *, k=5):
        self.names = [end_task.name, *(card.name for card in auxiliaries)]
        self.k = k
        self.won = ""

    def round(self, bench):
        steps = min(self.k, max(bench.steps_left // 2, 1))
        tries = [{bench.end_task: 1.0}]
        tries += [{bench.end_task: 0.5, name: 0.5} for name in bench.sample(1)]
        updates = [bench.trial(tried, steps=steps) for tried in tries]
        losses = [bench.dev_loss([update], [1.0], batches=2).value for update in updates]
        best = losses.index(min(losses))
        bench.apply([updates[best]], [1.0])
        self.won = " + ".join(tries[best])

    def weights(self):
        return dict.fromkeys(self.names, 1 / len(self.names))

    def record(self):
        return {"won": self.won}

    def state_dict(self):
        return {"won": self.won}

    def load_state_dict(self, state):
        self.won = state["won"]


@hookimpl
def aang_register_weighters(register):
    register("duel", "an objective stays if dev is better with it than without", Duel)
