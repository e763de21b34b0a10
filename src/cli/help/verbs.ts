/** The verbs of `apikey` by what they are for. One that is in no group is shown after them. */
export const VERB_GROUPS: Readonly<Record<string, readonly string[]>> = {
  Keys: 'create list show update rotate disable enable delete adopt can usage suggest review'.split(' '),
  Automation: ['apply', 'exec'],
  Leaks: ['contain', 'scan', 'verify'],
  Applications: ['requests', 'approve', 'deny'],
  Store: ['log', 'export', 'import', 'copy', 'backup', 'restore', 'compact', 'doctor'],
  Servers: ['guard', 'proxy', 'routes', 'edge', 'edges', 'notices', 'federation', 'login', 'logout'],
  Program: ['plugins'],
};

/** The groups in lines, for the help of a host, which lists the verbs by the alphabet. */
export const VERB_LINES = Object.entries(VERB_GROUPS)
  .map(([group, verbs]) => `${group}: ${verbs.join(', ')}.`)
  .join('\n');
