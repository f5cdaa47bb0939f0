from aang_core import hookimpl


class Echo:
    def __call__(self, ids, ordinary, vocabulary, generator):
        from aang_core import Corruption, select_tokens

        selected = select_tokens(ordinary, generator)
        return Corruption(ids.roll(1, 1).where(selected, ids), selected)


@hookimpl
def aang_register_transforms(register):
    register("echo", "selected tokens repeat the token before them", Echo)
