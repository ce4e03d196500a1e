// An OpenID Connect provider for tests, by the library oidc-provider. People sign in with their name alone.
//
// It also gives tokens on behalf of people (token_exchange.mjs): `audiences` are the URLs of servers by name, `assertionsFor` the
// client at each authorization server that assertions are given for, `trusts` the issuer whose assertions are taken. With
// `saysNoEnd` answers have no `expires_in`.
//
// The first argument is JSON: {redirectUris, postLogoutRedirectUris, groups: {NAME: [GROUP, …]}, resource, machineKeys}. Machines
// sign in as `machine` with a secret, and as `signing-machine` with one of machineKeys, public JSON Web Keys. It prints
// its issuer, and runs until its end. POST /test/algorithm/ALG gives it new keys, of another algorithm.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

import { giveOnBehalf, JWT_BEARER, TOKEN_EXCHANGE } from "./token_exchange.mjs";

const wanted = JSON.parse(process.argv[2]);
let generation = 0;
let algorithm = "RS256";

const machine = { grant_types: ["client_credentials"], redirect_uris: [], response_types: [] };

function keys() {
  generation += 1;
  const pairs = [
    ["RS256", generateKeyPairSync("rsa", { modulusLength: 2048 })],
    ["ES256", generateKeyPairSync("ec", { namedCurve: "P-256" })],
    ["EdDSA", generateKeyPairSync("ed25519")],
  ];
  return pairs.map(([alg, { privateKey }]) => ({
    ...privateKey.export({ format: "jwk" }), kid: `${alg}-${generation}`, use: "sig", alg,
  }));
}

function provider(issuer) {
  const known = keys();
  const made = new Provider(issuer, {
    jwks: { keys: known },
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "ES256", "EdDSA"] },
    clients: [
      {
        client_id: "dragoman",
        client_secret: "the-secret-of-dragoman-at-the-provider",
        redirect_uris: wanted.redirectUris,
        post_logout_redirect_uris: wanted.postLogoutRedirectUris,
        grant_types: ["authorization_code", "refresh_token", TOKEN_EXCHANGE],
        id_token_signed_response_alg: algorithm,
      },
      {
        ...machine,
        client_id: "dragoman-at-tickets",
        client_secret: "the-secret-of-dragoman-at-tickets",
        grant_types: [JWT_BEARER],
      },
      {
        client_id: "dragoman-cli",
        token_endpoint_auth_method: "none",
        application_type: "native",
        redirect_uris: ["http://127.0.0.1/callback"],
        grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
        id_token_signed_response_alg: algorithm,
      },
      { ...machine, client_id: "machine", client_secret: "the-secret-of-a-machine-at-the-provider" },
      ...(wanted.machineKeys ?? []).slice(0, 1).map((key) => ({
        ...machine,
        client_id: "signing-machine",
        token_endpoint_auth_method: "private_key_jwt",
        token_endpoint_auth_signing_alg: key.alg,
        jwks: { keys: wanted.machineKeys },
      })),
    ],
    pkce: { required: () => true },
    scopes: ["openid", "profile", "email", "groups", "offline_access"],
    claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
    conformIdTokenClaims: false,
    ...(wanted.idTokenLastsS ? { ttl: { IdToken: wanted.idTokenLastsS } } : {}),
    cookies: { keys: ["a key of this test"] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      rpInitiatedLogout: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource) => ({
          scope: "openid", audience: resource, accessTokenFormat: "jwt", accessTokenTTL: 300, jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    issueRefreshToken: async (_, client, code) => client.grantTypeAllowed("refresh_token") && code.scopes.has("offline_access"),
    rotateRefreshToken: true,
    extraTokenClaims: async (_, token) => ({ groups: wanted.groups[token.accountId] ?? [] }),
    findAccount: async (_, id) => ({
      accountId: id,
      claims: async () => ({
        sub: id, name: id, email: `${id}@example.com`, email_verified: true, groups: wanted.groups[id] ?? [],
      }),
    }),
    loadExistingGrant: (context) =>
      granted(context.oidc.provider, context.oidc.session.accountId, context.oidc.client.clientId),
  });
  giveOnBehalf(made, { keys: known, wanted });
  made.on("server_error", (_, error) => console.error(error));
  return made;
}

async function granted(made, accountId, clientId) {
  const grant = new made.Grant({ accountId, clientId });
  grant.addOIDCScope("openid profile email groups offline_access");
  if (wanted.resource) grant.addResourceScope(wanted.resource, "openid");
  await grant.save();
  return grant;
}

const server = createServer(async (request, response) => {
  const [path] = request.url.split("?");
  if (request.method === "POST" && path.startsWith("/test/algorithm/")) {
    algorithm = path.split("/").pop();
    current = provider(issuer);
    return response.end();
  }
  if (path.startsWith("/interaction/")) {
    const { prompt, session, params } = await current.interactionDetails(request, response);
    if (prompt.name === "consent") {
      // Clients on people's machines need one at each sign-in; everybody here consents.
      const { jti } = await granted(current, session.accountId, params.client_id);
      return current.interactionFinished(request, response, { consent: { grantId: jti } });
    }
    if (request.method === "GET") {
      response.setHeader("content-type", "text/html");
      return response.end(`<form method="post"><label>Name <input name="name"></label><button>Continue</button></form>`);
    }
    const parts = [];
    for await (const part of request) parts.push(part);
    const name = new URLSearchParams(Buffer.concat(parts).toString()).get("name");
    return current.interactionFinished(request, response, { login: { accountId: name } });
  }
  return current.callback()(request, response);
});

let issuer;
let current;
server.listen(0, "127.0.0.1", () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  current = provider(issuer);
  console.log(issuer);
});
