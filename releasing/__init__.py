"""What a release needs: one version everywhere, a cut changelog, archives with a README of their own. Not shipped."""
