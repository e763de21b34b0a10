import type { Section } from '../section.ts';
import { builtinResources, expect, limits, policy, resources, roles, routes } from './access.ts';
import { clients, consent } from './clients.ts';
import { federation } from './federation.ts';
import { people } from './people.ts';
import * as ofServer from './server.ts';
import { upstreams } from './upstreams.ts';

export { validResources, validRoles } from './access.ts';

/** The sections of the configuration, in the order in which they are read and described. */
export const SECTIONS: readonly Section[] = [
  resources,
  builtinResources,
  roles,
  ofServer.credentials,
  ofServer.trust,
  upstreams,
  routes,
  expect,
  ofServer.cors,
  ofServer.tls,
  ofServer.server,
  limits,
  policy,
  people,
  federation,
  ofServer.audit,
  ofServer.notices,
  ofServer.introspection,
  ofServer.publicUrl,
  consent,
  clients,
  ofServer.signIn,
  ofServer.feed,
];
