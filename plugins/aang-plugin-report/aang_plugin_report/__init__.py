"""What a run did, to look at: one HTML page, pictures for papers, charts for notebooks.

=================  ============================================================================
module             what it holds
=================  ============================================================================
hooks              what the plug-in registers, and what it does when a run has ended
command            ``aang report``
figures, charts    the charts of one run and of several, as data; what a chart is
drawing            charts drawn by plotly and matplotlib
page, templates    the HTML page
diagnosis          the figure of ``aang diagnose --plot``
=================  ============================================================================

Nothing is imported here, so that listing plug-ins loads neither plotly nor torch.
"""
