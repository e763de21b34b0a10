import type { CORE_SECTIONS } from './section-names.ts';
import type { Section } from './section.ts';
import { actions, builtinResources, limits, policy, prefix, resources, roles } from './sections/access.ts';
import { audit, cors, credentials, introspection, publicUrl, server, title, tls, trust } from './sections/server.ts';

/** The sections of the core by name, in the order in which they are read and documented. */
export const SECTIONS: Readonly<Record<(typeof CORE_SECTIONS)[number], Section>> = {
  resources,
  actions,
  prefix,
  builtinResources,
  roles,
  credentials,
  trust,
  cors,
  tls,
  server,
  limits,
  policy,
  audit,
  introspection,
  publicUrl,
  title,
};
