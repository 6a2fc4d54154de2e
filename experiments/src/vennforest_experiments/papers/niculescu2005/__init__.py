"""Niculescu-Mizil & Caruana (2005), Predicting good probabilities with supervised learning."""
