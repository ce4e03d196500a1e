// YAML as a document: the canvas changes values and leaves comments, order and style as they were written.
import { isMap, isScalar, isSeq, parse, parseDocument, stringify } from "yaml";

window.yaml = { isMap, isScalar, isSeq, parse, parseDocument, stringify };
