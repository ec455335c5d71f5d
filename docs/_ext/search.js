// How the site's search weighs and names results: Sphinx's own numbers, but a result that leads to a name
// shows the name, not only the title of its page.
var Scorer = {
  score: (result) => {
    const [, title, anchor, , score] = result;
    if (anchor.startsWith("#kompute_py.") && !title.includes("kompute_py."))
      result[1] = `${anchor.slice("#kompute_py.".length)} (${title})`;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
