{# A data test with `config: {sample: 0.1}` reads a tenth of the rows of the model that it tests, and
   of these only the rows that its `where` selects. Without `where`, it gets a relation, whose columns
   a test can look up. #}
{% macro qbeast__get_where_subquery(relation) -%}
  {%- set where = config.get('where', '') -%}
  {%- set sample = adapter.qbeast_sample_of_test(config) -%}
  {%- set source = relation if sample is none else adapter.qbeast_sampled(relation, sample) -%}
  {%- if not where -%}
    {% do return(source) %}
  {%- endif -%}
  {% do return('(select * from ' ~ source ~ ' where ' ~ where ~ ') dbt_subquery') %}
{%- endmacro %}
