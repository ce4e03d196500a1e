"""Providers of threads, messages and sources."""

from dependency_injector import containers, providers

from application.sources.add_source import AddSource
from application.sources.copy_sources import CopySources
from application.sources.delete_source import DeleteSource
from application.sources.ports import SourceCopies, SourceSearch
from application.sources.queries import GetSource, ListSources, ReadSource
from application.sources.search_sources import SearchSources
from application.sources.store_source import StoreSource
from application.threads.append_message import AppendMessage
from application.threads.create_thread import CreateThread
from application.threads.delete_thread import DeleteThread
from application.threads.fork_thread import ForkThread
from application.threads.queries import (
    GetThread,
    ListConversations,
    ListMessages,
    ListQuarantinedThreads,
)
from application.threads.release_thread import ReleaseThread
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.wiring import Singletons
from infrastructure.extraction.process_extractor import ProcessTextExtractor
from infrastructure.persistence.sources.copies import SqlSourceCopies
from infrastructure.persistence.sources.search import SqlSourceSearch

singleton = Singletons(Platform, Storage)


class Threads(containers.DeclarativeContainer):
    create_thread = singleton(CreateThread)
    get_thread = singleton(GetThread)
    list_quarantined_threads = singleton(ListQuarantinedThreads)
    list_conversations = singleton(ListConversations)
    list_messages = singleton(ListMessages)
    append_message = singleton(AppendMessage)
    delete_thread = singleton(DeleteThread)
    release_thread = singleton(ReleaseThread, queue=Storage.run_queue)

    text_extractor = singleton(ProcessTextExtractor)
    store_source = singleton(StoreSource, intake=Storage.source_intake, extractor=text_extractor)
    source_search: providers.Provider[SourceSearch] = singleton(SqlSourceSearch)
    search_sources = singleton(SearchSources, search=source_search)
    add_source = singleton(AddSource, store=store_source)
    list_sources = singleton(ListSources)
    get_source = singleton(GetSource)
    read_source = singleton(ReadSource)
    delete_source = singleton(DeleteSource)
    source_copies: providers.Provider[SourceCopies] = singleton(SqlSourceCopies)
    copy_sources = singleton(CopySources, intake=Storage.source_intake, copies=source_copies)
    fork_thread = singleton(ForkThread, sources=copy_sources)
