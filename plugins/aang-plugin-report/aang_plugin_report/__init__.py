"""Views of what a run did: an HTML page, pictures for papers, charts for notebooks.

=================  ============================================================================
module             what it holds
=================  ============================================================================
hooks              what the plug-in registers, and what it does after a run
command            ``aang report``
figures, charts    the charts of one run and of several, as data; the kinds of charts
drawing            drawing charts with plotly and matplotlib
page, templates    the HTML page
comparison         the charts of a comparison, from its table
diagnosis          the figure of ``aang diagnose --plot``
=================  ============================================================================

Nothing is imported here, so that listing plug-ins loads neither plotly nor torch.
"""
