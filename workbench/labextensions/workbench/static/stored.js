// An extension of JupyterLab 4 and Notebook 7, as they load it: where the widget of a saved output has no model in the
// kernel, the output's own text/html is shown. Without it such an output says "Error displaying widget: model not
// found", and the picture beside it is not looked at. Nothing builds this file: it is the container that a builder
// would write.
(() => {
  const VIEW = "application/vnd.jupyter.widget-view+json", STORED = "text/html";
  const WAIT_MS = 3000;  // ipywidgets looks for a model for two seconds, and without a kernel for ever

  // `widget`, which draws a live view, or the stored face of its output for as long as there is none.
  function withStored(widget, rendermime) {
    const render = widget.renderModel.bind(widget);
    let face = null, turn = 0;
    const drop = () => {
      face?.dispose();
      face = null;
    };
    const live = () => widget.isDisposed || widget.isHidden || widget.widgets.length > 0;
    async function settle(model, mine) {
      if (mine !== turn) return;
      if (live()) return drop();
      if (!face) {
        face = rendermime.createRenderer(STORED);
        await face.renderModel(model);
        if (mine !== turn || live()) return;
      }
      widget.removeClass("jupyter-widgets");
      widget.node.replaceChildren(face.node);
    }
    widget.renderModel = async (model) => {
      drop();
      const mine = ++turn, rendering = render(model);
      if (!model.data[STORED]) return rendering;
      const late = setTimeout(() => settle(model, mine), WAIT_MS);
      try {
        await rendering;
      } finally {
        clearTimeout(late);
      }
      return settle(model, mine);
    };
    widget.disposed.connect(drop);
    return widget;
  }

  function look(panel) {
    const rendermime = panel.content.rendermime, make = rendermime.createRenderer.bind(rendermime);
    rendermime.createRenderer = (type) => type === VIEW ? withStored(make(type), rendermime) : make(type);
  }

  const plugin = (tracker) => ({
    id: "workbench:stored",
    description: "Shows the stored picture of a widget that is gone.",
    autoStart: true,
    requires: [tracker],
    activate: (app, notebooks) => {
      notebooks.forEach(look);
      notebooks.widgetAdded.connect((sender, panel) => look(panel));
    },
  });

  let scope;
  (window._JUPYTERLAB ??= {})["workbench"] = {
    init: (shared) => { scope = shared; },
    get: async () => {
      const [notebook] = Object.values(scope["@jupyterlab/notebook"]);
      const {INotebookTracker} = (await notebook.get())();
      return () => ({__esModule: true, default: plugin(INotebookTracker)});
    },
  };
})();
