// Starts Swagger UI. Nothing is asked of other hosts, and a token is forgotten with the page.
"use strict";

window.SwaggerUIBundle({
  url: "/api/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  persistAuthorization: false,
  validatorUrl: null,
});
