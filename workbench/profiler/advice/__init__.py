"""What to make of a profile: explanations, comparisons, diagnoses with their levers."""
