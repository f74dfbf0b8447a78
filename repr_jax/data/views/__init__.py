"""Views of words: counted from text, bitext, trees and WordNet."""
