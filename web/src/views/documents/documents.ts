// All views of documents, bundled into one file.
import "../../shared";
export { DocumentPanel } from "./document_panel";
export { DocumentsView } from "./documents_view";
export { ShareDialog } from "./share_dialog";
export { SharedView } from "./shared_view";
