'use strict';

const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { requireCached } = require('./code-cache.cjs');

/** What prints the version. */
const VERSION = new Set(['version', '--version', '-v', '-V']);

/**
 * oclif and our commands, all in one file: opening their files one by one would take longer than what most commands
 * do, and what it leaves in memory stays with a server.
 */
exports.bundledProgram = function bundledProgram(root, args) {
  const file = join(root, 'dist', 'program.cjs');
  const { exports, keepCode } = requireCached(file, useOf(args));
  const options = ownOptions(root, {
    commands: { strategy: 'explicit', target: file, identifier: 'commands' },
    helpClass: { target: file, identifier: 'Help' },
  });
  const run = useOf(args) === 'version' ? () => exports.printVersion(options.pjson.version, args) : exports.run;
  // What a failed run did not come to would be missing.
  return { run, reportFailure: exports.reportFailure, options, keepCode: () => process.exitCode || keepCode() };
};

/** How much V8 has for young objects, at least, when that stops growing, in bytes, and how often it is looked at. */
const YOUNG_BYTES = 8 * 2 ** 20;
const LOOK_MS = 50;

/**
 * Keeps a command that reads through a large store from taking 128 MB for objects that live for a page of rows: V8
 * doubles the space for young ones while some of them survive. There is no setting of the most for a running process.
 */
exports.boundYoungSpace = function boundYoungSpace() {
  const timer = setInterval(() => {
    const { getHeapSpaceStatistics, setFlagsFromString } = require('node:v8');
    const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
    if (young.physical_space_size < YOUNG_BYTES) return;
    clearInterval(timer);
    setFlagsFromString('--semi-space-growth-factor=1');
  }, LOOK_MS).unref();
};

/** What a program is used for: each command needs other functions, and help needs those that show help. */
function useOf([topic, ...more]) {
  const [command = ''] = more;
  const asksForHelp = more.some((arg) => arg === '--help' || arg === '-h');
  if (VERSION.has(topic) && !asksForHelp) return 'version';
  const isServer = topic === 'serve' || topic === 'guard';
  if (topic !== 'apikey' && !isServer) return 'help';
  if (asksForHelp) return 'command-help';
  if (isServer) return topic;
  return /^[a-z]+$/.test(command) && !VERSION.has(command) ? command : topic;
}

/** What oclif loads where it finds commands in files of their own. */
exports.optionsOfPackages = (root) => ownOptions(root, { commands: './commands', helpClass: './cli/help/own-help.js' });

/**
 * What oclif loads for our own program, in which some commands have a short name: `login` for `apikey login`. They are
 * in the manifest in `dist`, which is the root for that; a host reads the other one, beside package.json.
 */
function ownOptions(root, parts) {
  const pjson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { topics } = pjson.oclif;
  Object.assign(pjson.oclif, parts, { topics: { ...topics, ...topics.apikey.subtopics } });
  // Nobody can install plugins into it: oclif would look for a list of them in the user's folder.
  return { root: join(root, 'dist'), pjson, userPlugins: false };
}
