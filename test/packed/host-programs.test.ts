import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Host, installHost, mustRun, ON_CORE, packedFile, run, withFile } from '../support/host.ts';
import { SECRET } from '../support/cli.ts';
import { tempFolder } from '../support/temp.ts';

/** A host's command that runs another and prints its result. */
const RELAY = `
  class Relay extends Command {
    async run() {
      const [id, ...argv] = this.argv;
      await this.parse(Relay, []);
      const outcome = await this.config.runCommand(id, argv).then(
        (result) => ({ result, secret: result?.key }),
        (error) => ({ isError: error instanceof Error, code: error.code, exit: error.oclif.exit, message: error.message }),
      );
      this.log('outcome: ' + JSON.stringify(outcome));
    }
  }
  Relay.strict = false;`;

/** The same without a `catch`. */
const PLAIN = `
  class Plain extends Command {
    async run() {
      const [id, ...argv] = this.argv;
      await this.parse(Plain, []);
      await this.config.runCommand(id, argv);
    }
  }
  Plain.strict = false;`;

/** A command that reads keys through the library. */
const NAMES = `
  class Names extends Command {
    async run() {
      await this.parse(Names, []);
      const { keysOf, OPERATOR } = await import('svc-api');
      const keys = await keysOf(this.config);
      for (const { name } of (await keys.list({}, { actor: OPERATOR })).keys) this.log(name);
      await keys.close();
    }
  }`;

/** A host with ES modules on oclif core 5, and one with CommonJS and colons between topics on core 4. */
const SHAPES = [
  {
    shape: 'of ES modules on oclif core 5',
    packages: ON_CORE[5],
    separator: ' ',
    files: {
      'commands/relay.js': `import { Command } from '@oclif/core';${RELAY}\nexport default Relay;`,
      'commands/plain.js': `import { Command } from '@oclif/core';${PLAIN}\nexport default Plain;`,
      'commands/names.js': `import { Command } from '@oclif/core';${NAMES}\nexport default Names;`,
    },
  },
  {
    shape: 'of CommonJS on oclif core 4, with colons',
    packages: ON_CORE[4],
    separator: ':',
    files: {
      'bin/run.js': `const { execute } = require('@oclif/core');\nvoid execute({ dir: __dirname });`,
      'commands/hello.js': `const { Command } = require('@oclif/core');\nmodule.exports = class Hello extends Command { async run() {} };`,
      'commands/relay.js': `const { Command } = require('@oclif/core');${RELAY}\nmodule.exports = Relay;`,
      'commands/plain.js': `const { Command } = require('@oclif/core');${PLAIN}\nmodule.exports = Plain;`,
      'commands/names.js': `const { Command } = require('@oclif/core');${NAMES}\nmodule.exports = Names;`,
      'hooks/schema.js': `module.exports = async () => ({ resources: ['BACKUP'] });`,
    },
  },
] as const;

for (const { shape, packages, separator, files } of SHAPES) {
  describe(`a host ${shape}`, () => {
    let host: Host;
    before(async () => {
      host = await installHost({ 'svc-api': `file:${packedFile()}`, ...packages }, (manifest) => {
        Object.assign(manifest, { type: separator === ':' ? 'commonjs' : 'module' });
        Object.assign(manifest.oclif, { topicSeparator: separator });
      });
      for (const [path, text] of Object.entries(files)) writeFileSync(join(host.folder, path), text);
    });

    /** The result of our command as the host's command sees it, and the end of the host. */
    const relayed = async (...args: string[]) => {
      const { stdout, stderr, code } = await host.cli(['relay', ...args]);
      const [, shown, outcome] = /^(.*)outcome: (.*)\n$/s.exec(stdout) ?? assert.fail(stdout + stderr);
      return { shown, outcome: JSON.parse(outcome!) as Record<string, unknown>, stderr, code };
    };

    it('gets the result of a command that it runs, with or without --json, and prints it or not', async () => {
      const text = await relayed('apikey:create', '--name', 'CI', '--roles', 'VIEWER', '--overwrite');
      const { result, secret } = text.outcome as { result: { name: string }; secret: string };
      assert.deepEqual([text.shown, text.stderr, result.name, text.code], ['', '', 'CI', 0]);
      assert.match(secret, SECRET);
      assert.deepEqual(Object.keys(result), ['name', 'id'], 'hooks that log results get no secret');
      for (const json of [[], ['--json']]) {
        const listed = await relayed('apikey:list', ...json);
        assert.deepEqual([listed.shown, listed.stderr, listed.code], ['', '', 0]);
        const { keys } = listed.outcome['result'] as { keys: { name: string }[] };
        assert.deepEqual(
          keys.map(({ name }) => name),
          ['CI'],
        );
      }
      const { stdout } = await host.cli([...['apikey', 'list'].join(separator).split(' '), '--json']);
      assert.equal((JSON.parse(stdout) as { keys: unknown[] }).keys.length, 1, 'a command that is typed prints');
      const denied = await relayed('apikey:explain', 'CI', 'DOCKER:UPDATE_ANY');
      assert.deepEqual([(denied.outcome['result'] as { allowed: boolean }).allowed, denied.code], [false, 4]);
    });

    it('gets the failure of a command that it runs, and decides about the output and its exit code', async () => {
      const failures = [
        [1, 'NOT_FOUND', 'apikey:show', 'Nobody'],
        [1, 'NOT_FOUND', 'apikey:delete', '--name', 'Nobody'],
        [2, 'USAGE', 'apikey', '--create', '--delete'],
        [2, 'USAGE', 'apikey:list', '--unknown'],
        [2, 'USAGE', 'serve', '--port', 'http'],
        [1, 'INPUT_INVALID', 'apikey:apply', '--dry-run', '-f', '/dev/null/keys.yaml'],
      ] as const;
      for (const [exit, code, ...args] of failures) {
        const { shown, outcome, stderr, code: own } = await relayed(...args);
        const { message, ...failure } = outcome;
        assert.deepEqual(failure, { isError: true, code, exit }, args.join(' '));
        assert.deepEqual([shown, own], ['', 0]);
        const said = stderr.replace(/^Error: /, '').replaceAll(/\n {7}/g, '\n');
        // A server has no result, and reports as usual.
        assert.equal(said === '' ? '' : said.includes(message as string), args[0] === 'serve' ? true : '', stderr);
      }
      const { shown, stderr } = await relayed('apikey:show', 'Nobody', '--json');
      assert.deepEqual([shown, stderr], ['', '']);
      const uncaught = await host.cli(['plain', 'apikey:show', 'Nobody']);
      const said = uncaught.stderr.replaceAll(/\s+/g, ' ');
      assert.match(said, /There is no API key named "Nobody"/, `oclif prints what the host does not catch: ${said}`);
      assert.deepEqual([uncaught.stdout, uncaught.code], ['', 1]);
    });

    it('opens what its commands open', async () => {
      const { stdout, stderr, code } = await host.cli(['names']);
      assert.deepEqual([stdout, stderr, code], ['CI\n', '', 0]);
      const elsewhere = await host.cli(['names'], { SVC_API_SERVER: 'http://127.0.0.1:1' });
      assert.match(elsewhere.stderr, /STORE_REQUIRED/);
      // The host's users do not know which commands it calls, and its commands lack our flags.
      assert.match(elsewhere.stderr, /SVC_API_SERVER/);
      assert.doesNotMatch(elsewhere.stderr, /keysOf|--database/);
    });

    it('gets output, result and error from @oclif/test', async () => {
      const program = `
        import { captureOutput, runCommand } from '@oclif/test';
        import { run } from '@oclif/core';
        const root = process.cwd();
        const listed = await runCommand(['apikey:list', '--json'], { root });
        const created = await captureOutput(() => run(['apikey:create', '--name', 'Two words', '--roles', 'GUEST'], root));
        const failed = await runCommand('apikey:show Nobody', { root });
        console.log(JSON.stringify({
          listed: [JSON.parse(listed.stdout), listed.result],
          created: [created.stdout.trim(), created.result.key, created.stderr],
          failed: [failed.error.code, failed.error.oclif.exit, failed.error.message, failed.stderr],
        }));`;
      const stdout = await mustRun(process.execPath, ['--input-type=module', '-e', program], {
        cwd: host.folder,
        env: { XDG_DATA_HOME: join(host.folder, 'home') },
      });
      const { listed, created, failed } = JSON.parse(stdout) as Record<'listed' | 'created' | 'failed', string[]>;
      assert.deepEqual(listed[0], listed[1]);
      assert.equal(created[0], created[1]);
      assert.match(created[2]!, /^Created API key "Two words"/);
      const list = `acme apikey${separator}list`;
      const message = `There is no API key named "Nobody". Run "${list}" to see all.`;
      assert.deepEqual(failed.slice(0, 3), ['NOT_FOUND', 1, message]);
      assert.ok(failed[3]!.startsWith(`Error: ${message}\nCode: NOT_FOUND\n`), failed[3]);
    });

    it('is named in every command of texts and help, with its separator', async () => {
      const other = separator === ' ' ? ':' : ' ';
      const program = `
        import { Config, loadHelpClass } from '@oclif/core';
        const config = await Config.load(process.cwd());
        const Help = await loadHelpClass(config);
        for (const id of config.commandIDs) await new Help(config).showHelp([id]);`;
      const help = await mustRun(process.execPath, ['--input-type=module', '-e', program], { cwd: host.folder });
      assert.ok(help.includes(`$ acme apikey${separator}rotate`));
      assert.doesNotMatch(
        help,
        new RegExp(
          `svc-api (apikey|backup|restore|doctor|serve|guard|routes|notices|federation|login|logout)|acme apikey${other}[a-z]`,
        ),
      );
      const exec = ['apikey', 'exec'].join(separator).split(' ');
      const { stderr } = await host.cli([...exec, '--roles', 'VIEWER']);
      assert.match(stderr, new RegExp(`as in: acme apikey${separator}exec --roles VIEWER -- `));
      const verify = await host.cli([...['apikey', 'verify'].join(separator).split(' '), 'x']);
      assert.match(verify.stderr, new RegExp(`Run: acme apikey${separator}verify - < file`));
    });

    it('ends well when the reader of its help leaves early', async () => {
      const script = `"$@" | true; echo "\${PIPESTATUS[0]}"`;
      const cli = [process.execPath, join(host.folder, 'bin/run.js'), 'apikey', '--help'];
      const { stdout, stderr } = await run('bash', ['-c', script, 'bash', ...cli], { cwd: host.folder });
      assert.deepEqual([stdout, stderr], ['0\n', '']);
    });

    it('may have a key store of its own, which all its commands use unless another is named', async () => {
      const home = join(host.folder, 'home');
      const setting = (database: unknown) => (text: string) => {
        const manifest = JSON.parse(text) as { oclif: Record<string, unknown> };
        manifest.oclif['svc-api'] = { database };
        return JSON.stringify(manifest);
      };
      const [apikey, pjson, elsewhere] = [
        ['apikey'],
        join(host.folder, 'package.json'),
        join(tempFolder(), 'k.sqlite'),
      ];
      const missing = async (args: string[], env = {}) => {
        const { stdout } = await host.cli([...apikey, '--delete', '--json', ...args], env);
        return /there are none in (.*)"/.exec(stdout)?.[1];
      };
      await withFile(pjson, setting('own/keys.sqlite'), async () => {
        assert.equal(await missing([]), join(home, 'acme/own/keys.sqlite'));
        assert.equal(await missing([], { SVC_API_DATABASE: elsewhere }), elsewhere);
        assert.equal(await missing(['--database', elsewhere]), elsewhere);
        const server = await host.cli(['serve', '--port', '0', '--host', '203.0.113.1']);
        assert.match(server.stderr + server.stdout, /acme\/own\/keys\.sqlite/, 'serve uses it too');
      });
      await withFile(pjson, setting(elsewhere), async () => assert.equal(await missing([]), elsewhere));
      for (const wrong of [7, '', null, ':memory:']) {
        const { stdout, code } = await withFile(pjson, setting(wrong), () =>
          host.cli([...apikey, '--delete', '--json']),
        );
        const { error, code: errorCode } = JSON.parse(stdout) as { error: string; code: string };
        assert.deepEqual([errorCode, code], ['HOST_INVALID', 1]);
        assert.match(error, /^In the package\.json of acme, oclif\["svc-api"\]\.database must be a path/);
      }
      const typo = await withFile(
        pjson,
        (text) => setting('x')(text).replace('"database"', '"databse"'),
        () => host.cli([...apikey, '--delete', '--json']),
      );
      assert.match(typo.stdout, /oclif\[\\"svc-api\\"\]\[\\"databse\\"\] is not a setting/);
    });
  });
}
