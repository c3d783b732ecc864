"""Words that say nothing about where an answer is: articles, pronouns, prepositions, forms of asking. Pure.

Six languages in one set, for a question's language is not known for sure; a word that bears meaning in one of
them is left out of the set: "die", "door", "hat" and "plus" are no function words in English.
"""

FUNCTION_WORDS = frozenset(
    (
        # English, with the words of asking
        "a about all also am an and any are at be been being between but by can could did do does "
        "doing done each for from get give gives had has have having he her here him his how i if in "
        "into is it its just let me more most much must my no not of on or our over please she should "
        "show so some tell than that the their them then there these they this those to under us was "
        "we were what when where which while who whom whose why will with would you your "
        # German
        "aber als am auch auf aus bei beim bis bitte da dann das dass dem den der des doch dort ein "
        "eine einem einen einer eines er es für gibt haben hatte ich ihr im ins ist ja kann können "
        "mit nach nicht noch nur ob oder ohne sei sein sich sie sind über um und uns unter vom von "
        "vor wann warum was welche welchem welchen welcher welches wenn wer werden wie wieso wir wird "
        "wo wurde wurden zu zum zur "
        # French, Spanish, Italian, Dutch: the smallest words
        "au aux avec ce ces cette comment dans de du elle en est et il la le les leur lui ne nous où "
        "par pas pour qu quand que quel quelle quelles quels qui sa ses sont sur un une vous al como "
        "con cual cuál cuando cuándo cuánto del dónde el es esta este están fue ha han las lo los más "
        "muy para pero por qué quién según ser si sobre su sus una unas uno unos y alla che chi cosa "
        "dal dalla degli dei della delle di e gli i nel nella non per perché quale quali quanto sono "
        "sul sulla aan bij dat deze dit een het hoe hun ik je kan maar naar niet nog of ook op te uit "
        "van voor waar waarom wanneer wat welk welke werd wie wij worden wordt ze zich zijn "
    ).split()
)
