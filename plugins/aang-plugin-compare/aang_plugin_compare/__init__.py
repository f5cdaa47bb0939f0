"""Comparisons of methods × tasks × seeds: planning, training in separate processes, testing.

The command is ``aang_plugin_compare.command:compare``. Nothing is imported here, so that listing
plug-ins stays light.

Public, for commands of other plug-ins that train many runs:

- ``choose_launcher``: ``launcher_options`` adds options to a command, ``chosen_launcher`` returns
  the launcher that they ask for, processes of this machine or a Ray cluster;
- ``launcher``: ``Launcher`` trains an ``Order``, which ``write_order`` makes; ``wait_for`` waits
  for several;
- ``resumable``: ``resumable`` says how to go on after an interrupt;
- ``run_folders``: ``make_root`` makes the folder for such runs, ``run_state`` says how far a run in
  it has come, ``remove_checkpoints`` removes those of a run that nobody resumes any more;
- ``settings``: ``layered`` lays options over options, ``with_setting`` puts values of a grid or a
  search into them, ``setting_text`` words these; ``given_names`` says which options have a value,
  ``option_name`` spells them; ``PUSHING`` names those that push a model;
- ``grid``: ``refuse_unowned`` checks that some run has an option of a weighter or primitive;
- ``plain_tables``: ``plain_table`` and ``score_text`` make tables.
"""
