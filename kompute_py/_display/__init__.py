"""How objects look in notebooks: cards, graphs, pictures. Knows no class at run time."""
