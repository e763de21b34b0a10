import * as v from 'valibot';
import { invalidProvider, type PeopleSettings } from './people.ts';
import { printable } from '../../keys/basics/index.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import { problemOfHeader } from '../../keys/secret/index.ts';
import { HEADER } from '../../config/patterns.ts';
import { json, map, named, namesAtMost, optional, parsed, required, rule, textWith } from '../../config/schema.ts';
import { fileIn, section, type SectionContext } from '../../config/section.ts';
import { GRANT, parseGrants } from './parse-grants.ts';

/** The most groups that are granted something. */
const MAX_GROUPS = 1000;
/** Headers of oauth2-proxy, whose prefixes have other meanings as well. */
const USUAL = /^x-(?:forwarded|auth-request)-(?:user|email|preferred-username|groups)$/i;

const NEEDS_TRUST =
  'The field "header" needs "trust", a list of the addresses of the proxy that signs people in, such as ' +
  'trust: [127.0.0.1]. Anything that connects from there can pretend to be anyone.';

/** A header of a proxy. @param problem one that it has anyway */
function headerOf(problem?: string) {
  const rule = textWith((name) => {
    const wrong = USUAL.test(name) ? undefined : problemOfHeader(name);
    const ofName = wrong && `The header "${printable(name)}" cannot identify people: it ${wrong}.`;
    return [problem ?? [], ofName ?? []].flat();
  }, HEADER);
  return v.pipe(rule, v.toLowerCase());
}

const NAMED = { pattern: '^\\S(?:.*\\S)?$' };
const isNamed = (given: string) => given.trim() !== '' && given === given.trim();
const name = v.pipe(v.string(), v.check(isNamed, 'must be text without spaces around it.'), json(NAMED));

function oidcOf(context: SectionContext) {
  return v.pipe(
    map(
      {
        issuer: required(
          v.pipe(
            name,
            rule((issuer) => (isNamed(issuer) ? invalidProvider(issuer) : undefined)),
            json({ pattern: '^https?://' }),
          ),
          'Its URL, exactly as the provider writes it.',
        ),
        'client-id': required(name, 'The id of svc-api at the provider.'),
        'client-secret': required(
          fileIn(context, 'Do not write the secret in this file. Write { file: <path> } with the path of its file.'),
          'The file with the secret.',
        ),
        groups: optional(name, 'The claim with their groups.', { otherwise: 'groups' }),
      },
      'must be a map with "issuer", "client-id" and "client-secret".',
    ),
    v.transform(({ issuer, 'client-id': clientId, 'client-secret': { file: secretFile }, groups = 'groups' }) => ({
      issuer,
      clientId,
      secretFile,
      groups,
    })),
  );
}

function grantOf(catalog: Catalog) {
  const group = v.pipe(
    v.string(),
    v.check(
      (group) => isNamed(group) && !group.includes(','),
      ({ input }) => `"${printable(input)}" is not a group: its name must have no spaces around it and no comma in it.`,
    ),
    json({ pattern: '^[^\\s,](?:[^,]*[^\\s,])?$' }),
  );
  return v.pipe(
    named(
      group,
      parsed(
        (items) => parseGrants(items, catalog),
        GRANT,
        'The group "{field}" has no grants. Name at least one, or leave the group out.',
      ),
      'must be a map of groups to lists of grants; "*" is everyone.',
    ),
    v.minEntries(1, 'is empty, so no one could sign in.'),
    namesAtMost(MAX_GROUPS, 'groups'),
  );
}

const REMEDY = 'Set "header" for people signed in by a proxy, or "oidc" for a provider';

export const people = section({
  description: 'People who sign in without a key, and their grants.',
  otherwise: 'no one',
  page: 'console.md#people-without-a-key',
  schema: (context) => {
    const { trust } = context.given;
    const isTrusting = trust !== undefined && !(Array.isArray(trust) && trust.length === 0);
    return v.pipe(
      map(
        {
          header: optional(
            headerOf(isTrusting ? undefined : NEEDS_TRUST),
            'Header in which a trusted proxy names the person.',
          ),
          groups: optional(headerOf(), 'Header with their groups, separated by commas.'),
          oidc: optional(oidcOf(context), 'A provider of OpenID Connect.'),
          grant: required(grantOf(context.catalog), 'Grants of each group; "*" is everyone who signs in.'),
        },
        'must be a map with "grant", and with "header" for people behind a proxy, or "oidc" for those who sign in at a ' +
          'provider.',
      ),
      rule(({ header, groups, oidc }) => {
        if ((header === undefined) === (oidc === undefined))
          return header === undefined ? `${REMEDY}.` : `${REMEDY}, not both.`;
        if (oidc !== undefined && groups !== undefined)
          return {
            path: ['groups'],
            message: 'The field "groups" is a header of a proxy. For a provider, set the claim as "groups" in "oidc".',
          };
        if (header !== undefined && header === groups)
          return { path: ['groups'], message: 'The fields "groups" and "header" must name different headers.' };
        return undefined;
      }),
      json({
        oneOf: [
          { required: ['header'], not: { required: ['oidc'] } },
          { required: ['oidc'], not: { anyOf: [{ required: ['header'] }, { required: ['groups'] }] } },
        ],
      }),
      v.transform(({ header, groups, oidc, grant }): PeopleSettings => ({
        by: oidc ?? { header: header!, groups },
        grant,
      })),
    );
  },
  into: (people) => ({ people }),
});
