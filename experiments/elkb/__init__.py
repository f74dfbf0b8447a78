"""Knowledge bases whose vectors obey logical rules (thesis 5.4)."""
