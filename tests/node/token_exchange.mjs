// Grants of the provider in identity_provider.mjs that give tokens on behalf of people: token exchange (RFC 8693), with
// assertions for other authorization servers (ID-JAG), and the use of such assertions (RFC 7523).
import { createLocalJWKSet, createRemoteJWKSet, importJWK, jwtVerify, SignJWT } from "jose";
import { errors } from "oidc-provider";

export const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TYPES = "urn:ietf:params:oauth:token-type:";
const ID_JAG_TYPE = "oauth-id-jag+jwt";
const LASTS_S = 300;

function publicPart({ kty, n, e, crv, x, y, kid, alg, use }) {
  return { kty, n, e, crv, x, y, kid, alg, use };
}

// `keys` are the provider's; `wanted` as in identity_provider.mjs.
export function giveOnBehalf(made, { keys, wanted }) {
  const used = new Set();

  async function subjectOf({ params, client }) {
    if (params.subject_token_type === `${TYPES}id_token`) {
      const known = createLocalJWKSet({ keys: keys.map(publicPart) });
      const options = { issuer: made.issuer, audience: client.clientId };
      return (await jwtVerify(params.subject_token, known, options)).payload.sub;
    }
    return (await made.AccessToken.find(params.subject_token)).accountId;
  }

  async function tokenFor(context, accountId, audience) {
    const token = new made.AccessToken({ accountId, client: context.oidc.client, scope: "openid", gty: "on-behalf" });
    token.resourceServer = new made.ResourceServer(audience, {
      scope: "openid", audience, accessTokenFormat: "jwt", accessTokenTTL: wanted.exchangedLastsS ?? LASTS_S, jwt: { sign: { alg: "RS256" } },
    });
    const said = wanted.saysNoEnd ? {} : { expires_in: token.expiration };
    return { access_token: await token.save(), token_type: "Bearer", ...said };
  }

  made.registerGrantType(TOKEN_EXCHANGE, async (context) => {
    const { params, client } = context.oidc;
    let sub;
    try {
      sub = await subjectOf(context.oidc);
    } catch {
      throw new errors.InvalidGrant("the subject token is of no use");
    }
    if (params.requested_token_type === `${TYPES}id-jag`) {
      const given = wanted.assertionsFor ?? {};
      const there = given[params.audience] ?? given["*"];
      if (!there) throw new errors.InvalidTarget("no assertions are given for this audience");
      const signing = keys.find((key) => key.alg === "RS256");
      const assertion = await new SignJWT({ client_id: there, resource: params.resource, scope: params.scope })
        .setProtectedHeader({ alg: "RS256", kid: signing.kid, typ: ID_JAG_TYPE })
        .setIssuer(made.issuer).setSubject(sub).setAudience(params.audience)
        .setJti(crypto.randomUUID()).setIssuedAt().setExpirationTime("5m")
        .sign(await importJWK(signing, "RS256"));
      context.body = { issued_token_type: `${TYPES}id-jag`, access_token: assertion, token_type: "N_A", expires_in: LASTS_S };
      return;
    }
    const audience = params.audience ? (wanted.audiences ?? {})[params.audience] : params.resource;
    if (!audience || client.clientId === "machine") throw new errors.InvalidTarget("unknown audience");
    context.body = { ...(await tokenFor(context, sub, audience)), issued_token_type: `${TYPES}access_token` };
  }, ["subject_token", "subject_token_type", "requested_token_type", "audience", "resource", "scope"]);

  made.registerGrantType(JWT_BEARER, async (context) => {
    const { params, client } = context.oidc;
    const known = createRemoteJWKSet(new URL(`${wanted.trusts}/jwks`));
    let claims;
    try {
      ({ payload: claims } = await jwtVerify(params.assertion, known, {
        issuer: wanted.trusts, audience: made.issuer, typ: ID_JAG_TYPE, requiredClaims: ["jti", "exp", "client_id", "resource"],
      }));
    } catch {
      throw new errors.InvalidGrant("the assertion is of no use");
    }
    if (claims.client_id !== client.clientId || claims.resource !== params.resource || used.has(claims.jti)) {
      throw new errors.InvalidGrant("the assertion is for another client or resource, or was used");
    }
    used.add(claims.jti);
    context.body = await tokenFor(context, claims.sub, claims.resource);
  }, ["assertion", "resource", "scope"]);
}
