import { type DocumentIssue, DocumentReader, isRecord } from '../keys/document.ts';
import { createCatalog, type HostResource } from '../keys/permissions/catalog.ts';
import { readCredentials, readTrust } from './callers.ts';
import { readClients, readConsent, readPublicUrl } from './clients.ts';
import type { Config } from './config.ts';
import { readResources, readRoles } from './grants.ts';
import { readLimits } from './limits.ts';
import { readNotices } from './notices.ts';
import { readPolicySection } from './policy.ts';
import { readRoutes } from './routes.ts';
import { readCors, readIntrospection, readServer, readTls } from './server.ts';

/** The fields of the file; `$schema` names its JSON Schema for editors. */
export const CONFIG_FIELDS = [
  '$schema',
  'resources',
  'roles',
  'credentials',
  'trust',
  'routes',
  'expect',
  'cors',
  'tls',
  'server',
  'limits',
  'policy',
  'notices',
  'introspection',
  'publicUrl',
  'consent',
  'clients',
] as const;

/** What a file is read with. */
export interface ConfigContext {
  /** The absolute path of the file. */
  file: string;
  /** The host's own resources, which roles and routes may name, too. */
  resources: readonly HostResource[];
  /** Is told what is expected of the routes and is not so, which otherwise is wrong with the file. */
  onUnmet?: ((issues: readonly DocumentIssue[]) => void) | undefined;
}

/** Reads a parsed file. An empty one says nothing. @returns the configuration, or all that is wrong with the file */
export function readConfig(
  value: unknown,
  { file, resources: ofHost, onUnmet }: ConfigContext,
): { config: Config } | { issues: readonly DocumentIssue[] } {
  const reader = new DocumentReader();
  const given = value ?? {};
  if (!isRecord(given)) {
    reader.report([], 'The configuration must be a map of fields, such as "resources: [WIKI]".');
    return { issues: reader.issues };
  }
  const fields = reader.knownFields(given, [], CONFIG_FIELDS);
  if (fields.$schema !== undefined) reader.text(fields.$schema, ['$schema']);
  const resources = readResources(reader, fields.resources);
  const catalog = createCatalog({ resources: [...ofHost, ...resources], declaredIn: 'this file' });
  const roles = readRoles(reader, fields.roles, catalog);
  const { unmet, ...declared } = readRoutes(reader, fields, catalog);
  if (!onUnmet) reader.issues.push(...unmet);
  else if (unmet.length > 0) onUnmet(unmet);
  const config: Config = {
    file,
    resources,
    roles,
    credentials: readCredentials(reader, fields.credentials),
    trust: readTrust(reader, fields.trust),
    routes: declared.routes,
    expect: declared.expect,
    cors: readCors(reader, fields.cors),
    tls: readTls(reader, fields.tls, file),
    server: readServer(reader, fields.server),
    limits: readLimits(reader, fields.limits),
    policy: readPolicySection(
      reader,
      fields.policy,
      createCatalog({ resources: catalog.resources, roles, declaredIn: 'this file' }),
    ),
    notices: readNotices(reader, fields.notices, file),
    introspection: readIntrospection(reader, fields.introspection),
    publicUrl: readPublicUrl(reader, fields.publicUrl),
    consent: readConsent(reader, fields.consent),
    clients: readClients(reader, fields.clients, fields.consent),
  };
  return reader.issues.length > 0 ? { issues: reader.ownIssues } : { config };
}
