import 'reflect-metadata';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  Module,
  Req,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Request, Response } from 'express';
import { openKeys, type Permission, type Principal } from 'svc-api';

const keys = await openKeys();

/** A guard for keys with a permission. */
function requiring(permission: Permission): new () => CanActivate {
  return class implements CanActivate {
    async canActivate(context: ExecutionContext): Promise<boolean> {
      const [req, res] = [context.switchToHttp().getRequest<Request>(), context.switchToHttp().getResponse<Response>()];
      const checked = await keys.check(req, { permission });
      res.set(checked.headers);
      if (!checked.ok) throw new HttpException(JSON.parse(checked.body), checked.status);
      Object.assign(req, { principal: checked.principal });
      return true;
    }
  };
}

@Controller('backups')
@UseGuards(requiring('SERVICES:READ_ANY'))
class Backups {
  @Get('latest')
  latest(@Req() { principal }: { principal: Principal }) {
    return { by: principal.apiKey.name };
  }
}

@Module({ controllers: [Backups] })
class Service {}

const app = await NestFactory.create(Service, { logger: ['error'] });
await app.listen(Number(process.env['PORT']), '127.0.0.1');
