// Modules that the page and its views share. Every view imports this file, so that they become one file, chunk.js:
// the build fails if it would have to make a second one, and then a module is missing here.
import "./parts/dialog";
import "./stores/audiences";
import "./stores/chat";
import "./stores/uploads";
import "./views/sources/page_panel";
