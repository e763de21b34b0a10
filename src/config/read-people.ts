import {
  type GrantsByGroup,
  invalidProvider,
  type PeopleSettings,
  type SignInProvider,
  type SignInProxy,
} from '../keys/authentication/index.ts';
import { type DocumentPath, type Issue, isRecord, printable } from '../keys/basics/index.ts';
import { type Catalog, type Grant, parsePermissions, parseRoles } from '../keys/permissions/index.ts';
import { problemOfHeader } from '../keys/secret/index.ts';
import type { ConfigReader } from './config-reader.ts';

/** The fields of `people`, of its `oidc`, and of the secret in that. */
export const PEOPLE_FIELDS = ['header', 'groups', 'oidc', 'grant'] as const;
export const OIDC_FIELDS = ['issuer', 'client-id', 'client-secret', 'groups'] as const;
export const SECRET_FIELDS = ['file'] as const;
/** The most groups that are granted something. */
export const MAX_GROUPS = 1000;

const FORM =
  'a map with "grant", and with "header" for who comes through a proxy, or "oidc" for who signs in at a provider';

/**
 * Reads who signs people in, and what they are granted.
 * @param trust of the same file: by default, everything on this machine would be believed
 * @param catalog with all resources and roles
 */
export function readPeople(
  reader: ConfigReader,
  { people: value, trust }: { people?: unknown; trust?: unknown },
  catalog: Catalog,
): PeopleSettings | undefined {
  const fields = reader.section(value, 'people', PEOPLE_FIELDS, FORM);
  if (!fields) return undefined;
  const { header, groups, oidc } = fields;
  const grant = readGrant(reader, fields.grant, catalog);
  if ((header === undefined) === (oidc === undefined)) {
    const remedy = 'Give "header" for people whom a proxy signs in, or "oidc" for a provider';
    reader.report(['people'], header === undefined ? `${remedy}.` : `${remedy}, not both.`);
    return undefined;
  }
  if (oidc !== undefined && groups !== undefined)
    reader.report(
      ['people', 'groups'],
      'The header "groups" is that of a proxy. Of a provider, "oidc" names the claim.',
    );
  if (header !== undefined && (trust === undefined || (Array.isArray(trust) && trust.length === 0)))
    reader.report(
      ['people', 'header'],
      'The field "header" needs "trust", a list of the addresses of the proxy that signs people in, such as ' +
        'trust: [127.0.0.1]. Everything that connects from there can be anybody.',
    );
  const by = oidc === undefined ? readProxy(reader, { header, groups }) : readProvider(reader, oidc);
  return by && { by, grant };
}

/** Those of oauth2-proxy, in families that have other meanings. */
const USUAL = /^x-(?:forwarded|auth-request)-(?:user|email|preferred-username|groups)$/i;

function readProxy(
  reader: ConfigReader,
  { header, groups }: { header: unknown; groups: unknown },
): SignInProxy | undefined {
  const nameOf = (field: 'header' | 'groups', given: unknown) => {
    const path = ['people', field];
    const name = reader.optionalText(given, path);
    const problem = name === undefined || USUAL.test(name) ? undefined : problemOfHeader(name);
    if (problem !== undefined)
      reader.report(path, `The header "${printable(name!)}" cannot say who somebody is: it ${problem}.`);
    return problem === undefined ? name?.toLowerCase() : undefined;
  };
  const read = { header: nameOf('header', header), groups: nameOf('groups', groups) };
  if (read.header !== undefined && read.header === read.groups)
    reader.report(['people', 'groups'], 'The header "groups" must be another one than "header".');
  return read.header === undefined ? undefined : { header: read.header, groups: read.groups };
}

function readProvider(reader: ConfigReader, value: unknown): SignInProvider | undefined {
  const path = ['people', 'oidc'];
  if (!isRecord(value))
    return reader.report(path, 'The field "oidc" must be a map with "issuer", "client-id" and "client-secret".');
  const fields = reader.knownFields(value, path, OIDC_FIELDS);
  const textOf = (field: 'issuer' | 'client-id') => {
    const text = reader.requiredText(fields[field], [...path, field]);
    return text === undefined || isNamed(reader, text, [...path, field]) ? text : undefined;
  };
  const [issuer, clientId] = [textOf('issuer'), textOf('client-id')];
  const problem = issuer === undefined ? undefined : invalidProvider(issuer);
  if (problem !== undefined) reader.report([...path, 'issuer'], problem);
  const secretFile = reader.fileIn(
    fields['client-secret'],
    [...path, 'client-secret'],
    'The secret does not belong in this file. Write { file: <path> } for the file that has it.',
  );
  const groups = fields.groups === undefined ? 'groups' : reader.text(fields.groups, [...path, 'groups']);
  if (groups !== undefined) isNamed(reader, groups, [...path, 'groups']);
  if (issuer === undefined || clientId === undefined || secretFile === undefined) return undefined;
  return { issuer, clientId, secretFile, groups: groups ?? '' };
}

function isNamed(reader: ConfigReader, text: string, path: DocumentPath): boolean {
  if (text.trim() !== '' && text === text.trim()) return true;
  reader.report(path, `The field "${path.at(-1)}" must be text without blanks around it.`);
  return false;
}

function readGrant(reader: ConfigReader, value: unknown, catalog: Catalog): GrantsByGroup {
  const path = ['people', 'grant'];
  if (value === undefined) reader.missing(['people'], 'grant');
  else if (!isRecord(value))
    reader.report(path, 'The field "grant" must be a map of groups to lists of grants; "*" is everybody.');
  if (!isRecord(value)) return {};
  const groups = Object.keys(value);
  if (groups.length === 0) reader.report(path, 'The field "grant" is empty, so that nobody could sign in.');
  return Object.fromEntries(
    reader.firstOf(groups, path, MAX_GROUPS, 'groups').map((group) => {
      const at = [...path, group];
      if (group.trim() === '' || group !== group.trim() || group.includes(','))
        reader.issues.push({
          path: at,
          ofField: true,
          message: `"${printable(group)}" is not a group: its name must have no spaces around it and no comma in it.`,
        });
      const grants = reader.parsedList(value[group], at, (items) => parseGrants(items, catalog));
      const nothing = `The group "${printable(group)}" is granted nothing. Name at least one grant, or leave it out.`;
      reader.refuseEmpty(value[group], at, nothing);
      return [group, grants];
    }),
  );
}

const ROLE = /^role:\s*/i;

/** Permissions as `RESOURCE:ACTION`, and roles as `role:VIEWER`, as scopes of OAuth have them. */
export function parseGrants(items: readonly string[], catalog: Catalog): { values: Grant[]; issues: Issue[] } {
  const parsed = items.map((item) => {
    const text = item.trim();
    if (ROLE.test(text)) return parseRoles([text.replace(ROLE, '')], catalog);
    const [role] = text.includes(':') ? [] : parseRoles([text], catalog).values;
    if (role === undefined) return parsePermissions([text], catalog);
    const message = `"${printable(text)}" is not a permission. Of a role, write role:${role}.`;
    return { values: [], issues: [{ code: 'PERMISSION_INVALID' as const, message }] };
  });
  return {
    values: [...new Set(parsed.flatMap(({ values }): Grant[] => values))],
    issues: parsed.flatMap(({ issues }) => issues),
  };
}
