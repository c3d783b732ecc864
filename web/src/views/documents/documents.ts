// All views of documents, bundled into one file.
import "../../shared";
export { DocumentPanel } from "./document_panel";
export { DocumentsView } from "./documents_view";
