// Modules shared by the page and its views. Every view imports this file, so that they are bundled into one file,
// chunk.js. If the build would create a second chunk, it fails: add the missing module here.
import "./parts/dialog";
import "./stores/audiences";
import "./stores/chat";
import "./stores/namesakes";
import "./stores/uploads";
import "./views/chat/citation_list";
import "./views/chat/markdown";
import "./views/sources/page_panel";
