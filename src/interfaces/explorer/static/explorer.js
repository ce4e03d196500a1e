"use strict";
// Shows the service's OpenAPI document. Requests go to this service only, with the key that a person enters.
window.ui = SwaggerUIBundle({
  url: "/schema/openapi.json",
  dom_id: "#explorer",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  filter: true,
  tryItOutEnabled: true,
});
