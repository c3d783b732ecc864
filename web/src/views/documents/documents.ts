// What the documents need, as one file to load.
import "../../shared";
export { DocumentPanel } from "./document_panel";
export { DocumentsView } from "./documents_view";
